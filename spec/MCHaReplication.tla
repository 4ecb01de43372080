--------------------------- MODULE MCHaReplication ---------------------------
(* HaReplication with bounds: every behaviour of a small cluster. The configurations beside this *)
(* module say in their first lines what each of them shows.                                     *)
EXTENDS HaReplication

\* Some questions do not need every detail; their configurations leave these out.
WholePieces(s) == IF Linked(s) /\ link[s].next # None THEN {Min(FileEnd(link[s].next), SendLimit(link[s].to))} ELSE {}
Never(s)       == FALSE
NeverTo(s, o)  == FALSE
==============================================================================
