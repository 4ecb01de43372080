---- MODULE MCTurnstile ----
EXTENDS Turnstile
====
