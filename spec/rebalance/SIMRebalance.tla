---- MODULE SIMRebalance ----
(* Rebalance with larger bounds, for long random walks. *)
EXTENDS Rebalance
====
