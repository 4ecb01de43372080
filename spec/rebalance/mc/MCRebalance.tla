----------------------------- MODULE MCRebalance -----------------------------
(* Rebalance with bounds: every behaviour of a small group. The configurations beside this module *)
(* say in their first lines what each of them shows.                                             *)
EXTENDS Rebalance

\* Some questions do not need every action; their configurations leave these out.
Never(p)           == FALSE
Never2(p, q)       == FALSE
Never3(p, q, o)    == FALSE
Never4(p, q, o, s) == FALSE

\* More than can be, for configurations that judge guards.
AnyCommit == [queue : Queue, offset : Offset]
AnyUnlock == [id : Ids, queue : Queue]
AnyPoint(p, q) == 0..(Messages + 1)

\* Who can act, for the large configurations.
WhoIsUp      == {p \in Process : alive[p] = "up"}
FirstToStrike == IF faults < MaxFaults THEN {1} ELSE {}
NotYetStruck == IF faults < MaxFaults THEN Process ELSE {}
\* ... and what would change something: to read the same list again, or to hand out what is handed out, does not.
NewLists(p)   == {b \in Broker : members[b] # view[p]}
Waiting(p, q) == cached[p][q] \ running[p][q]
==============================================================================
