----------------------------- MODULE MCRebalance -----------------------------
(* Rebalance with bounds: every behaviour of a small group. configurations.toml says what each *)
(* configuration shows.                                                                       *)
EXTENDS Rebalance

\* Actions that a question does not need, and its configuration leaves out.
Never(p)           == FALSE
Never2(p, q)       == FALSE
Never3(p, q, o)    == FALSE
Never4(p, q, o, s) == FALSE

\* More than can occur, for configurations that judge guards.
AnyCommit == [queue : Queue, offset : Offset]
AnyUnlock == [id : Ids, queue : Queue]
AnyPoint(p, q) == 0..(Messages + 1)

\* Who can act, for large configurations.
WhoIsUp      == {p \in Process : alive[p] = "up"}
FirstToStrike == IF faults < MaxFaults THEN {1} ELSE {}
NotYetStruck == IF faults < MaxFaults THEN Process ELSE {}
\* ... and what would change something: reading the same list again, or handing out what is already out, does not.
NewLists(p)   == {b \in Broker : members[b] # view[p]}
Waiting(p, q) == cached[p][q] \ running[p][q]
==============================================================================
