------------------------- MODULE MCHaReplicationSeen -------------------------
(* What must be possible: TLC has to violate each of these.               *)
EXTENDS MCHaReplication

\* What a producer hears.
NeverOk           == \A m \in Msg : status[m] # "ok"
NeverNoSlave      == \A m \in Msg : status[m] # "no_slave"
NeverSlaveTimeout == \A m \in Msg : status[m] # "slave_timeout"
NeverDiskTimeout  == \A m \in Msg : status[m] # "disk_timeout"
NeverUnknown      == \A m \in Msg : status[m] # "unknown"

\* What becomes of a connection.
NeverHeartbeat == \A s \in Node : Linked(s) => \A i \in 1..Len(link[s].down) : link[s].down[i].body # <<>>
NeverLeftOver  == \A s \in Node : dead[s] = NoLink
NeverClosed    == [][\A s \in Node : dead[s] # NoLink => dead'[s] = dead[s]]_vars
NeverBeyond    == dead[Stray] = NoLink \/ dead[Stray].ack <= End(dead[Stray].to)

\* What becomes of a broker.
NeverDown         == \A n \in Node : up[n] = "up"
NeverLosesAll     == [][\A n \in Node : log'[n] # log[n] /\ lostPower' # lostPower => End(n)' > durable[n]]_vars
NeverLosesNothing == [][lostPower' # lostPower => log' # log]_vars
NeverPromoted     == ~promoted
==============================================================================
