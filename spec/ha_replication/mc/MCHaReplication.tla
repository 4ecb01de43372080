--------------------------- MODULE MCHaReplication ---------------------------
(* HaReplication with bounds: every behaviour of a small cluster. configurations.toml says what each *)
(* configuration shows.                                                                             *)
EXTENDS HaReplicationPromises

\* Details that a question does not need, and its configuration leaves out.
WholePieces(s) == IF Linked(s) /\ link[s].next # None THEN {Min(FileEnd(link[s].next), SendLimit(link[s].to))} ELSE {}
Never(s)       == FALSE
NeverTo(s, o)  == FALSE

\* More than can occur, for configurations that judge guards.
AnyPoint(n) == 0..(End(n) + 1)
AnyPiece(s) == 0..FarAway

\* Who can act, for large configurations.
ServingMasters == {n \in Node : ServingMaster(n)}
ServingSlaves  == {s \in Node : ServingSlave(s)}
LinkedSlaves   == {s \in Node : link[s] # NoLink}
NotUp          == {n \in Node : up[n] # "up"}
NotYetStruck   == IF faults < MaxFaults THEN Node ELSE {}
Unanswered     == {m \in Msg : status[m] \in {"waiting", "alone"}}
AllowedPieces(s) == IF link[s].next # None /\ base[link[s].to] <= link[s].next
                    THEN (link[s].next + 1)..Min(FileEnd(link[s].next), SendLimit(link[s].to)) ELSE {}
==============================================================================
