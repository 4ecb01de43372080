------------------------ MODULE MCHaReplicationMasters ------------------------
(* HaReplication from where it has two masters: n1 crashes, n2 is promoted, n1 comes back. Then n3 copies from both. *)
EXTENDS MCHaReplication
CONSTANTS n1, n2, n3

SplitBrain == promoted /\ up[n1] = "up"
InTurn     == IF faults = 0 THEN {n1} ELSE IF faults = 1 THEN {n2} ELSE IF faults < MaxFaults THEN {n3} ELSE {}
\* One of the two masters crashes, or the second one does and n3 follows it as a master, whatever it is connected to.
CrashAgain == IF faults = 0 THEN {n1} ELSE IF faults = 1 THEN {n2} ELSE IF faults = 2 THEN {n1, n2} ELSE IF faults < MaxFaults THEN {n3} ELSE {}
OnceSplit  == IF SplitBrain THEN Node ELSE {}
LastSlave  == IF SplitBrain THEN {n3} ELSE {}
\* Cell by cell, the first half of a record from one master, the second half from the other.
OneCell(s) == IF Linked(s) /\ link[s].next # None /\ (link[s].next % 2 = 0) = (link[s].to = n1) THEN {link[s].next + 1} ELSE {}
==============================================================================
