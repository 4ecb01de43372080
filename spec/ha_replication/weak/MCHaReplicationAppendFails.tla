--------------------- MODULE MCHaReplicationAppendFails ---------------------
(***************************************************************************)
(* HaReplication with a slave whose append fails (its disk is full). 4.9.8 *)
(* does not look at the result: it considers the piece done and reads the  *)
(* next one. Past its own end that does no harm, because the next piece    *)
(* does not fit and the slave closes the connection. An empty slave        *)
(* accepts any piece, so it puts the next one in the place of the one that *)
(* failed.                                                                 *)
(***************************************************************************)
EXTENDS MCHaReplication

CONSTANT FailureCloses   \* the repair: a slave that cannot append closes the connection

\* Which slaves it may strike.
MayStrike(s) == TRUE
NotEmpty(s)  == End(s) # 0

\* A slave: it cannot write the piece that it has read.                                  (environment)
SlaveAppendFails(s) ==
    /\ Fault("SlaveAppendFails")
    /\ MayStrike(s)
    /\ Linked(s)               \* so it is a slave that runs
    /\ link[s].down # <<>>
    /\ Head(link[s].down).body # <<>>
    /\ End(s) = 0 \/ End(s) = Head(link[s].down).from
    /\ link' = IF FailureCloses THEN Closed(s) ELSE [link EXCEPT ![s].down = Tail(@)]
    /\ faults' = faults + 1
    /\ UNCHANGED <<nodeVars, dead, pushMax, putVars, leader, promoted, lostPower, emptied, retired, falseAcks>>

FailingNext == Next \/ \E s \in Node : SlaveAppendFails(s)
FailingSpec == Init /\ [][FailingNext]_vars
\* What failed last is noticed by the next heartbeat.
FairFailingSpec == FailingSpec /\ Fairness /\ \A s \in Node : WF_vars(MasterHeartbeat(s))

\* No slave closes a connection because of what it reads from it. (Expected to be violated.)
NeverRefused == [][\A s \in Node : link[s] # NoLink /\ link'[s] = NoLink => Faulty]_vars

\* Double entry: an append fails where one was to be made, no less and no more.
FailureGuard == \A s \in Node : ENABLED SlaveAppendFails(s) <=>
    /\ "SlaveAppendFails" \in Faults /\ faults + 1 <= MaxFaults /\ MayStrike(s)
    /\ role[s] = "slave" /\ up[s] = "up"
    /\ IF link[s] = NoLink THEN FALSE
       ELSE IF link[s].down = <<>> THEN FALSE
       ELSE Len(link[s].down[1].body) > 0 /\ base[s] + Len(log[s]) \in {0, link[s].down[1].from}
==============================================================================
