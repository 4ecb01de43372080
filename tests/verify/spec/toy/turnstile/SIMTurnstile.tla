---- MODULE SIMTurnstile ----
EXTENDS Turnstile
====
