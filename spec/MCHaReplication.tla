--------------------------- MODULE MCHaReplication ---------------------------
(* HaReplication with bounds: every behaviour of a small cluster. The configurations beside this *)
(* module say in their first lines what each of them shows.                                     *)
EXTENDS HaReplication
==============================================================================
