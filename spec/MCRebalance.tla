----------------------------- MODULE MCRebalance -----------------------------
(* Rebalance with bounds: every behaviour of a small group. The configurations beside this module *)
(* say in their first lines what each of them shows.                                             *)
EXTENDS Rebalance
==============================================================================
