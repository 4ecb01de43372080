---------------------------- MODULE TraceRebalance ----------------------------
(***************************************************************************)
(* Is a recorded trace of a consumer group a behaviour of Rebalance? Each  *)
(* step takes the next event, which must be possible and must describe the *)
(* state after it.                                                         *)
(*                                                                         *)
(* `actor` is the client (a process has a client id of its own); queue_id  *)
(* is the place of the queue among the queues of the topic, from 0. The    *)
(* trace is of one broker. Which client sorts before which is not in the   *)
(* trace: TLC cannot compare texts, so every order of the clients is tried *)
(* at the beginning, and each is a line from there on.                     *)
(***************************************************************************)
EXTENDS Rebalance, Sequences

CONSTANT Events
VARIABLES taken,   \* how many events have been taken
          rank     \* rank[name]: the place of a client in the order of the ids
traceVars == <<taken, rank, vars>>

Actors == {Events[i].actor : i \in 1..Len(Events)} \ {""}
MaxOf(S) == CHOOSE x \in S : \A y \in S : y <= x
TraceProcesses == Max(Cardinality(Actors), 1)
TraceQueues    == MaxOf({Events[i].queue_id : i \in 1..Len(Events)} \cup {0}) + 1
TraceLength    == Len(Events)
Orders == {f \in [Actors -> 1..Cardinality(Actors)] : \A x, y \in Actors : x # y => f[x] # f[y]}

TraceInit == Init /\ taken = 0 /\ rank \in Orders

OnMember(e, p) ==
    \/ e.action = "Heartbeat" /\ (Heartbeat(p, 1) \/ (p \in members[1] /\ UNCHANGED vars))
    \/ e.action = "Leave" /\ Leave(p)
    \/ e.action = "ViewRefresh" /\ ViewRefresh(p, 1) /\ Cardinality(view'[p]) = e.members
    \/ e.action = "RouteRefresh" /\ RouteRefresh(p) /\ route'[p] = e.queues
    \/ e.action = "RemoveMember" /\ RemoveMember(1, p)
    \/ e.action = "ConsumerDeath" /\ ConsumerDeath(p)
    \/ e.action = "ConsumerPause" /\ ConsumerPause(p)
    \/ e.action = "ConsumerResume" /\ ConsumerResume(p)

\* A queue is given up with the offset that its owner had (-1: none), taken at the offset of the event.
OnQueue(e, p, q) ==
    \/ e.action = "ReleaseQueue" /\ memory[p][q] = e.consumed_to /\ ReleaseQueue(p, q)
    \/ e.action = "AcquireQueue" /\ AcquireQueue(p, q, Start(q, TRUE) = e.start_offset) /\ next'[p][q] = e.start_offset
    \/ /\ e.action = "PullMessages"
       /\ own[p][q] = "yes" /\ next[p][q] = e.from_offset
       /\ IF e.next_offset = e.from_offset THEN UNCHANGED vars ELSE PullMessages(p, q, e.next_offset)
    \/ e.action = "ConsumeStart" /\ ConsumeStart(p, q, e.queue_offset)
    \/ e.action = "ConsumeFinish" /\ ConsumeFinish(p, q, e.queue_offset, e.status = 0)
    \/ e.action = "CommitSend" /\ memory[p][q] = e.offset /\ CommitSend(p, q)
    \/ e.action = "LockQueue" /\ LockQueue(p, q, TRUE) /\ trust'[p][q] = (e.granted # 0)
    \/ e.action = "UnlockQueue" /\ UnlockQueue([id |-> Id(p), queue |-> q])
    \/ e.action = "TrustExpire" /\ TrustExpire(p, q)

OnBroker(e, q) ==
    \/ /\ e.action = "CommitOffset"
       /\ committed[q] = e.before
       /\ IF [queue |-> q, offset |-> e.after] \in net THEN CommitOffset([queue |-> q, offset |-> e.after])
          ELSE e.before = e.after /\ UNCHANGED vars      \* the same commit, sent twice
    \/ e.action = "LoseCommit" /\ LoseCommit([queue |-> q, offset |-> e.offset])
    \/ e.action = "LoanExpire" /\ LoanExpire(q)
    \/ e.action = "ResetOffset" /\ committed[q] = e.before /\ ResetOffset(q, e.after)
    \/ e.action = "ProduceMessage" /\ length[q] = e.queue_offset /\ ProduceMessage(q)
    \/ e.action = "PersistOffsets" /\ (PersistOffsets(1) \/ (saved = committed /\ UNCHANGED vars))
    \/ e.action = "RestartBroker" /\ RestartBroker(1)
    \/ e.action = "RouteChange" /\ RouteChange(e.queues)

MemberActions == {"Heartbeat", "Leave", "ViewRefresh", "RouteRefresh", "RemoveMember", "ConsumerDeath", "ConsumerPause", "ConsumerResume"}
QueueActions  == {"ReleaseQueue", "AcquireQueue", "PullMessages", "ConsumeStart", "ConsumeFinish", "CommitSend", "LockQueue", "UnlockQueue", "TrustExpire"}
TakeEvent ==
    /\ taken < Len(Events)
    /\ taken' = taken + 1
    /\ UNCHANGED rank
    /\ LET e == Events[taken + 1] IN
       IF e.action \in MemberActions THEN OnMember(e, rank[e.actor])
       ELSE IF e.action \in QueueActions THEN OnQueue(e, rank[e.actor], e.queue_id + 1)
       ELSE OnBroker(e, e.queue_id + 1)

TraceSpec == TraceInit /\ [][TakeEvent]_traceVars

\* Acceptance is refinement. (A pull may bring any number of messages: the configuration puts this in the place of PullPoints.)
AnyPullPoint(p, q) == (next[p][q] + 1)..length[q]
StepsOfNext == [][Next]_vars
==============================================================================
