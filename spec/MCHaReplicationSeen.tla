------------------------- MODULE MCHaReplicationSeen -------------------------
(* What may happen does happen: each of these is expected to be violated. *)
EXTENDS MCHaReplication

NeverNoSlave      == \A m \in Msg : status[m] # "no_slave"
NeverSlaveTimeout == \A m \in Msg : status[m] # "slave_timeout"
NeverDiskTimeout  == \A m \in Msg : status[m] # "disk_timeout"
NeverUnknown      == \A m \in Msg : status[m] # "unknown"
NeverLeftOver     == \A s \in Node : dead[s] = NoLink
NeverClosed       == [][\A s \in Node : dead[s] # NoLink => dead'[s] = dead[s]]_vars
NeverPromoted     == ~promoted
NeverHeartbeat    == \A s \in Node : Linked(s) => \A i \in 1..Len(link[s].down) : link[s].down[i].body # <<>>
==============================================================================
