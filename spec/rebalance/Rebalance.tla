------------------------------ MODULE Rebalance ------------------------------
(***************************************************************************)
(* The consumers of one group share the queues of a topic. Nobody assigns  *)
(* them: each client reads the list of members from some broker, computes  *)
(* its own share, gives up what is not in it and takes what is. Offsets    *)
(* are committed by one-way messages; a broker keeps the last one that     *)
(* arrives. For orderly consumption a broker lends each queue to one       *)
(* client; the client trusts the loan for a shorter time (30 s) than the   *)
(* broker grants it (60 s).                                                *)
(*                                                                         *)
(* Modelled: several brokers whose member lists may differ, read one at a  *)
(* time; a route that changes and that clients learn late; rebalance queue *)
(* by queue, with everything else in between; drop, persist, forget, then  *)
(* lock, query, create; commits that are late, lost, repeated and out of   *)
(* order; concurrent consumption (messages end in any order) and orderly   *)
(* consumption (loans and trust as ages that end in a known order, unlocks *)
(* that come late, answers that are lost); restarts of a broker (members   *)
(* and loans forgotten, offsets from the file); consumers that leave, die, *)
(* pause and resume, and listeners that outlive a shutdown; two processes  *)
(* with one client id; queues without a committed offset; an operator who  *)
(* resets it.                                                              *)
(*                                                                         *)
(* Left out: notifications (a rebalance may happen at any time, so a lost  *)
(* notification is a late one), the commit inside a pull (CommitSend and   *)
(* CommitOffset directly before it), pulls in flight (an answer for a      *)
(* dropped queue is ignored), what a listener still does for a queue that  *)
(* its concurrent consumer has dropped (a duplicate at most), retry topics *)
(* (a message handed to one counts as consumed), the 0 that a broker       *)
(* answers for a young queue without an offset (it hides W-06), unlocks    *)
(* that are sent at once and come late (their connection keeps them before *)
(* a later lock), strategies other than AVG (spec/proofs has the others),  *)
(* slaves (W-08), offsets beyond the queue (W-19), unsubscribing (W-22),   *)
(* the clean-up of messages that run too long (W-23). A reset of a group   *)
(* that is online, and polls (W-20), are in MCRebalanceOnlineReset.        *)
(*                                                                         *)
(* Every repair is a constant; FALSE is RocketMQ 4.9.8. W-01 .. W-26 are   *)
(* the windows of the explanation page.                                    *)
(* Read from: RebalanceImpl, RebalancePushImpl, ProcessQueue,              *)
(* RemoteBrokerOffsetStore, ConsumeMessage(Concurrently|Orderly)Service,   *)
(* ConsumerManager, RebalanceLockManager and ConsumerOffsetManager of      *)
(* RocketMQ 4.9.8.                                                         *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
    Processes, Queues, Brokers, \* how many of each
    FirstQueues,       \* queues that the nameserver lists at the beginning
    Messages,          \* messages that a queue can hold
    FirstMessages,     \* messages that every queue holds at the beginning
    MaxNet,            \* commits in flight
    MaxFaults,         \* how many of the actions named in Faults may happen
    Faults,            \* names of the environment's actions that may happen
    Orderly,           \* orderly consumption (locks), or concurrent
    StartAtLast,       \* CONSUME_FROM_LAST_OFFSET for a queue without a committed offset
    SharedId,          \* every process has the same client id (W-10)
    \* Repairs. FALSE: 4.9.8 as it is.
    MonotoneCommit,    \* a commit never lowers an offset                                (W-04)
    DurableCommit,     \* an offset is in the file before it counts
    LockGrace,         \* a restarted broker lends nothing while old trust may last
    CancelUnlock,      \* taking a queue again cancels one's own delayed unlock          (W-15)
    ListenerBounded,   \* a listener ends before the trust in its lock does (assumption) (W-16)
    CommitStart,       \* the first position is committed before the first pull          (W-06)
    QueryErrorKnown,   \* an error is not read as `no offset`                            (W-07)
    ResetWhenQuiet,    \* an operator resets only when no commit is in flight            (W-21)
    DedupIds,          \* members are counted by client id, not by connection            (W-10)
    LeaveWaits         \* a shutdown waits for the listeners                             (W-24)

VARIABLES
    alive,      \* alive[p]: "up", "paused", "dead" or "left"
    members,    \* members[b]: the processes whose connection broker b counts
    listed,     \* how many queues the nameserver lists
    route,      \* route[p]: how many of them p knows
    view,       \* view[p]: the member list that p read last; {} before the first
    own,        \* own[p][q]: "no", "yes", or "dropped" (given up, a listener still runs)
    next,       \* next[p][q]: where p pulls next
    cached,     \* cached[p][q]: offsets that p has pulled and not finished
    running,    \* running[p][q]: offsets in the hands of p's listener
    memory,     \* memory[p][q]: the offset that p would commit, or None
    committed,  \* committed[q]: the offset that q's broker knows, or None
    saved,      \* saved[q]: the offset in its file, or None
    net,        \* commits in flight: [queue, offset]
    loan,       \* loan[q]: the client id that q is lent to, or None
    trust,      \* trust[p][q]: p trusts its lock on q
    unlocks,    \* unlocks that will be sent later: [id, queue]
    restarted,  \* brokers that have forgotten their loans
    length,     \* length[q]: messages in q
    done,       \* history: done[q]: offsets whose effect has happened
    begin,      \* history: begin[q]: where the group began, or None
    resets,     \* history: how often an operator moved an offset
    faults      \* how many of Faults have happened

clientVars == <<alive, listed, route, view, own, next, cached, running, memory>>
lockVars   == <<loan, trust, unlocks, restarted>>
offsetVars == <<committed, saved, net>>
histVars   == <<length, done, begin, resets, faults>>
vars == <<alive, members, listed, route, view, own, next, cached, running, memory, committed, saved, net,
          loan, trust, unlocks, restarted, length, done, begin, resets, faults>>

Process == 1..Processes
Queue   == 1..Queues
Broker  == 1..Brokers
Offset  == 0..Messages
None    == -1
Max(a, b) == IF a > b THEN a ELSE b
Least(S)  == CHOOSE x \in S : \A y \in S : x <= y

Id(p)     == IF SharedId THEN 1 ELSE p
Ids       == {Id(p) : p \in Process}
HomeOf(q) == ((q - 1) % Brokers) + 1      \* the broker that keeps q, its offset and its loan
Fault(name) == faults < MaxFaults /\ name \in Faults
Live(p)   == alive[p] \in {"up", "paused"}

------------------------------------------------------------------------------
\* The AVG strategy: the share of p of n queues among the members v. A client that is not in the list
\* gets nothing; one that is there twice has its first place.
AverageShare(v, p, n) ==
    LET places == IF DedupIds THEN {Id(r) : r \in v} ELSE v       \* (an id is its own id)
        count == Cardinality(places)
        index == Cardinality({x \in places : Id(x) < Id(p)})
        rest  == n % count
        big   == index < rest
        size  == n \div count + (IF big THEN 1 ELSE 0)
        start == IF big THEN index * size ELSE index * size + rest
    IN  IF \A r \in v : Id(r) # Id(p) THEN {}
        ELSE {q \in 1..n : start < q /\ q <= start + size}
\* All of them, computed once.
Shares == [v \in (SUBSET Process) \ {{}} |-> [p \in Process |-> [n \in Queue |-> AverageShare(v, p, n)]]]
\* What p believes to be its share: nothing before it has read a list.
InShare(p, q) == view[p] # {} /\ q \in Shares[view[p]][p][route[p]]

Init ==
    /\ alive = [p \in Process |-> "up"]
    /\ members = [b \in Broker |-> {}]
    /\ listed = FirstQueues
    /\ route = [p \in Process |-> FirstQueues]
    /\ view = [p \in Process |-> {}]
    /\ own = [p \in Process |-> [q \in Queue |-> "no"]]
    /\ next = [p \in Process |-> [q \in Queue |-> 0]]
    /\ cached = [p \in Process |-> [q \in Queue |-> {}]]
    /\ running = [p \in Process |-> [q \in Queue |-> {}]]
    /\ memory = [p \in Process |-> [q \in Queue |-> None]]
    /\ committed = [q \in Queue |-> None] /\ saved = [q \in Queue |-> None] /\ net = {}
    /\ loan = [q \in Queue |-> None]
    /\ trust = [p \in Process |-> [q \in Queue |-> FALSE]]
    /\ unlocks = {} /\ restarted = {}
    /\ length = [q \in Queue |-> FirstMessages]
    /\ done = [q \in Queue |-> {}]
    /\ begin = [q \in Queue |-> None]
    /\ resets = 0 /\ faults = 0

\* p's table entry of q is gone.
Forget(p, q) ==
    /\ own' = [own EXCEPT ![p][q] = "no"]
    /\ next' = [next EXCEPT ![p][q] = 0]
    /\ cached' = [cached EXCEPT ![p][q] = {}]
    /\ running' = [running EXCEPT ![p][q] = {}]
    /\ memory' = [memory EXCEPT ![p][q] = None]

\* A one-way message: it may be lost before it is in flight (always when the model's net is full).
NetWith(commits) == IF Cardinality(net \cup commits) <= MaxNet THEN net \cup commits ELSE net
CommitOf(p, q) == IF memory[p][q] = None THEN {} ELSE {[queue |-> q, offset |-> memory[p][q]]}

------------------------------------------------------------------------------
\* A client, every 30 s and at its start: registers at a broker, on its own connection.      heartbeat
Heartbeat(p, b) ==
    /\ alive[p] = "up" /\ p \notin members[b]
    /\ members' = [members EXCEPT ![b] = @ \cup {p}]
    /\ UNCHANGED <<clientVars, lockVars, offsetVars, histVars>>

\* A client that shuts down cleanly: commits, gives its loans back, unregisters. It does not wait
\* for an orderly listener that still runs.                                                     leave
Leave(p) ==
    /\ Fault("Leave")
    /\ alive[p] = "up"
    /\ LeaveWaits => \A q \in Queue : running[p][q] = {}
    /\ alive' = [alive EXCEPT ![p] = "left"]
    /\ members' = [b \in Broker |-> members[b] \ {p}]
    /\ view' = [view EXCEPT ![p] = {}]
    /\ net' = NetWith(UNION {CommitOf(p, q) : q \in Queue})
    /\ own' = [own EXCEPT ![p] = [q \in Queue |-> "no"]]
    /\ next' = [next EXCEPT ![p] = [q \in Queue |-> 0]]
    /\ cached' = [cached EXCEPT ![p] = [q \in Queue |-> {}]]
    /\ running' = IF Orderly THEN running ELSE [running EXCEPT ![p] = [q \in Queue |-> {}]]
    /\ memory' = [memory EXCEPT ![p] = [q \in Queue |-> None]]
    /\ loan' = [q \in Queue |-> IF trust[p][q] /\ loan[q] = Id(p) THEN None ELSE loan[q]]
    /\ trust' = [trust EXCEPT ![p] = [q \in Queue |-> FALSE]]
    /\ faults' = faults + 1
    /\ UNCHANGED <<listed, route, unlocks, restarted, committed, saved, length, done, begin, resets>>

\* A client, every 20 s, at its start and when it is notified: reads the members from one broker. A
\* broker that knows nobody answers with an error, and the client keeps what it has.       view_refresh
ViewRefresh(p, b) ==
    /\ alive[p] = "up"
    /\ members[b] # {}
    /\ view' = [view EXCEPT ![p] = members[b]]
    /\ UNCHANGED <<alive, listed, route, own, next, cached, running, memory, members, lockVars, offsetVars, histVars>>

\* A client, every 30 s: learns from the nameserver which queues there are.               route_refresh
RouteRefresh(p) ==
    /\ alive[p] = "up"
    /\ route[p] # listed
    /\ route' = [route EXCEPT ![p] = listed]
    /\ UNCHANGED <<alive, listed, view, own, next, cached, running, memory, members, lockVars, offsetVars, histVars>>

\* A client whose share no longer has q: drops it, sends its offset, forgets it. Orderly, it gives the
\* loan back only when no listener runs (until then the entry stays, dropped, and is tried again), and
\* 20 s later if messages were cached.                                                    release_queue
ReleaseQueue(p, q) ==
    /\ alive[p] = "up"
    /\ own[p][q] = "dropped" \/ (own[p][q] = "yes" /\ ~InShare(p, q))
    /\ net' = NetWith(CommitOf(p, q))
    /\ IF Orderly /\ running[p][q] # {}
       THEN /\ own' = [own EXCEPT ![p][q] = "dropped"]
            /\ memory' = [memory EXCEPT ![p][q] = None]
            /\ UNCHANGED <<next, cached, running, loan, trust, unlocks>>
       ELSE /\ Forget(p, q)
            /\ trust' = [trust EXCEPT ![p][q] = FALSE]
            /\ IF Orderly /\ cached[p][q] # {}
               THEN unlocks' = unlocks \cup {[id |-> Id(p), queue |-> q]} /\ UNCHANGED loan
               ELSE loan' = [loan EXCEPT ![q] = IF @ = Id(p) THEN None ELSE @] /\ UNCHANGED unlocks
    /\ UNCHANGED <<alive, listed, route, view, members, restarted, committed, saved, histVars>>

\* A client whose share has q: (orderly: with the lock in hand) asks for the committed offset and starts
\* there; without one it starts at the beginning, or at the end. An error counts as no offset.
Start(q, asked) == IF asked /\ committed[q] # None THEN committed[q]
                   ELSE IF StartAtLast THEN length[q] ELSE 0
AcquireQueue(p, q, asked) ==                                                             \* acquire_queue
    /\ alive[p] = "up"
    /\ own[p][q] = "no" /\ InShare(p, q)
    /\ Orderly => trust[p][q]
    /\ asked \/ (~QueryErrorKnown /\ Fault("QueryError"))
    /\ own' = [own EXCEPT ![p][q] = "yes"]
    /\ next' = [next EXCEPT ![p][q] = Start(q, asked)]
    /\ memory' = [memory EXCEPT ![p][q] = IF CommitStart THEN Start(q, asked) ELSE IF asked THEN committed[q] ELSE None]
    /\ committed' = [committed EXCEPT ![q] = IF CommitStart /\ @ = None THEN Start(q, asked) ELSE @]
    /\ saved' = [saved EXCEPT ![q] = IF CommitStart /\ DurableCommit /\ @ = None THEN Start(q, asked) ELSE @]
    /\ begin' = [begin EXCEPT ![q] = IF @ = None THEN Start(q, asked) ELSE @]
    /\ faults' = IF asked THEN faults ELSE faults + 1
    /\ UNCHANGED <<alive, listed, route, view, cached, running, members, net, lockVars, length, done, resets>>

\* A client: fetches the messages up to offset o.                                          pull_messages
PullMessages(p, q, o) ==
    /\ alive[p] = "up" /\ own[p][q] = "yes"
    /\ next[p][q] < o /\ o <= length[q]
    /\ cached' = [cached EXCEPT ![p][q] = @ \cup next[p][q]..(o - 1)]
    /\ next' = [next EXCEPT ![p][q] = o]
    /\ UNCHANGED <<alive, listed, route, view, own, running, memory, members, lockVars, offsetVars, histVars>>

\* A client: hands a message to the listener; orderly, the oldest one, one at a time, and only while it
\* trusts its lock.                                                                        consume_start
ConsumeStart(p, q, o) ==
    /\ alive[p] = "up" /\ own[p][q] = "yes"
    /\ o \in cached[p][q]
    /\ Orderly => trust[p][q] /\ running[p][q] = {} /\ o = Least(cached[p][q])
    /\ running' = [running EXCEPT ![p][q] = @ \cup {o}]
    /\ UNCHANGED <<alive, listed, route, view, own, next, cached, memory, members, lockVars, offsetVars, histVars>>

\* The listener is done. Success (or handed to the retry topic): the offset to commit is the first one
\* that is not finished. Failure: the message waits for another attempt. The result of a queue that was
\* dropped meanwhile does not count, nor that of a consumer that has left.                consume_finish
ConsumeFinish(p, q, o, success) ==
    LET left == cached[p][q] \ {o}
        mark == IF left = {} THEN next[p][q] ELSE Least(left)
    IN  /\ alive[p] \in {"up", "left"}
        /\ o \in running[p][q]
        /\ running' = [running EXCEPT ![p][q] = @ \ {o}]
        /\ IF success
           THEN /\ done' = [done EXCEPT ![q] = @ \cup {o}]
                /\ cached' = [cached EXCEPT ![p][q] = left]
                /\ memory' = [memory EXCEPT ![p][q] = IF own[p][q] = "yes" THEN Max(@, mark) ELSE @]
           ELSE UNCHANGED <<done, cached, memory>>
        /\ UNCHANGED <<alive, listed, route, view, own, next, members, lockVars, offsetVars, length, begin, resets, faults>>

\* A client, every 5 s: sends the offset of a queue that it owns, changed or not.            commit_send
CommitSend(p, q) ==
    /\ alive[p] = "up" /\ own[p][q] = "yes"
    /\ CommitOf(p, q) # {}
    /\ Cardinality(net) < MaxNet
    /\ net' = net \cup CommitOf(p, q)
    /\ UNCHANGED <<committed, saved, members, clientVars, lockVars, histVars>>

\* The broker: the last commit that arrives wins, whoever sent it and when.                commit_offset
CommitOffset(c) ==
    /\ c \in net
    /\ net' = net \ {c}
    /\ committed' = [committed EXCEPT ![c.queue] = IF MonotoneCommit THEN Max(@, c.offset) ELSE c.offset]
    /\ saved' = IF DurableCommit THEN [saved EXCEPT ![c.queue] = committed'[c.queue]] ELSE saved
    /\ UNCHANGED <<members, clientVars, lockVars, histVars>>

\* The broker, every 5 s: writes its offsets to the file.                                persist_offsets
PersistOffsets(b) ==
    /\ saved' = [q \in Queue |-> IF HomeOf(q) = b THEN committed[q] ELSE saved[q]]
    /\ saved' # saved
    /\ UNCHANGED <<committed, net, members, clientVars, lockVars, histVars>>

\* The broker, asked by a client (before it takes a queue, and every 20 s for all that it has): lends the
\* queue to a client id if nobody else holds it. The answer may be lost; a refusal ends the client's trust.
LockQueue(p, q, answered) ==                                                                 \* lock_queue
    LET granted == /\ loan[q] \in {None, Id(p)}
                   /\ LockGrace /\ HomeOf(q) \in restarted => \A r \in Process : r # p => ~trust[r][q]
    IN  /\ Orderly
        /\ alive[p] = "up"
        /\ own[p][q] # "no" \/ InShare(p, q)
        /\ answered \/ (granted /\ Fault("LoseAnswer"))
        /\ loan' = IF granted THEN [loan EXCEPT ![q] = Id(p)] ELSE loan
        /\ trust' = IF answered THEN [trust EXCEPT ![p][q] = granted] ELSE trust
        /\ unlocks' = IF CancelUnlock /\ granted THEN unlocks \ {[id |-> Id(p), queue |-> q]} ELSE unlocks
        /\ faults' = IF answered THEN faults ELSE faults + 1
        /\ UNCHANGED <<restarted, members, clientVars, offsetVars, length, done, begin, resets>>

\* The broker, when a delayed unlock arrives: the loan ends if that client id holds it.     unlock_queue
UnlockQueue(u) ==
    /\ u \in unlocks
    /\ unlocks' = unlocks \ {u}
    /\ loan' = [loan EXCEPT ![u.queue] = IF @ = u.id THEN None ELSE @]
    /\ UNCHANGED <<trust, restarted, members, clientVars, offsetVars, histVars>>

\* A client's clock: 30 s without a renewal.                                                trust_expire
TrustExpire(p, q) ==
    /\ trust[p][q]
    /\ ListenerBounded => running[p][q] = {}
    /\ trust' = [trust EXCEPT ![p][q] = FALSE]
    /\ UNCHANGED <<loan, unlocks, restarted, members, clientVars, offsetVars, histVars>>

\* The broker's clock: 60 s without a renewal; whoever had the loan stopped trusting it at 30 s. loan_expire
LoanExpire(q) ==
    /\ loan[q] # None
    /\ \A p \in Process : Id(p) = loan[q] => ~trust[p][q]
    /\ loan' = [loan EXCEPT ![q] = None]
    /\ UNCHANGED <<trust, unlocks, restarted, members, clientVars, offsetVars, histVars>>

\* The broker: a connection has closed, or nothing came on it for 120 s. For a client that is well this is
\* a fault of the network.                                                                 remove_member
RemoveMember(b, p) ==
    /\ p \in members[b]
    /\ alive[p] # "up" \/ Fault("RemoveMember")
    /\ members' = [members EXCEPT ![b] = @ \ {p}]
    /\ faults' = IF alive[p] # "up" THEN faults ELSE faults + 1
    /\ UNCHANGED <<clientVars, lockVars, offsetVars, length, done, begin, resets>>

\* A consumer dies silently: what it knew is gone, what it sent is in flight.              (environment)
ConsumerDeath(p) ==
    /\ Fault("ConsumerDeath")
    /\ Live(p)
    /\ alive' = [alive EXCEPT ![p] = "dead"]
    /\ view' = [view EXCEPT ![p] = {}]
    /\ own' = [own EXCEPT ![p] = [q \in Queue |-> "no"]]
    /\ next' = [next EXCEPT ![p] = [q \in Queue |-> 0]]
    /\ cached' = [cached EXCEPT ![p] = [q \in Queue |-> {}]]
    /\ running' = [running EXCEPT ![p] = [q \in Queue |-> {}]]
    /\ memory' = [memory EXCEPT ![p] = [q \in Queue |-> None]]
    /\ trust' = [trust EXCEPT ![p] = [q \in Queue |-> FALSE]]
    /\ unlocks' = IF \E r \in Process \ {p} : Id(r) = Id(p) THEN unlocks ELSE {u \in unlocks : u.id # Id(p)}
    /\ faults' = faults + 1
    /\ UNCHANGED <<listed, route, members, offsetVars, loan, restarted, length, done, begin, resets>>

\* A consumer stops (garbage collection, a suspended machine) while the clocks go on.      (environment)
ConsumerPause(p) ==
    /\ Fault("ConsumerPause")
    /\ alive[p] = "up"
    /\ ListenerBounded => \A q \in Queue : running[p][q] = {}
    /\ alive' = [alive EXCEPT ![p] = "paused"]
    /\ faults' = faults + 1
    /\ UNCHANGED <<listed, route, view, own, next, cached, running, memory, members, lockVars, offsetVars, length, done, begin, resets>>

\* It goes on where it was, with what it had.                                              (environment)
ConsumerResume(p) ==
    /\ alive[p] = "paused"
    /\ alive' = [alive EXCEPT ![p] = "up"]
    /\ UNCHANGED <<listed, route, view, own, next, cached, running, memory, members, lockVars, offsetVars, histVars>>

\* A commit is lost on its way.                                                            (environment)
LoseCommit(c) ==
    /\ Fault("LoseCommit")
    /\ c \in net
    /\ net' = net \ {c}
    /\ faults' = faults + 1
    /\ UNCHANGED <<committed, saved, members, clientVars, lockVars, length, done, begin, resets>>

\* A broker restarts: members and loans are forgotten, offsets are those of the file, and what was in
\* flight to it is lost with its connections.                                              (environment)
RestartBroker(b) ==
    /\ Fault("RestartBroker")
    /\ members' = [members EXCEPT ![b] = {}]
    /\ committed' = [q \in Queue |-> IF HomeOf(q) = b THEN saved[q] ELSE committed[q]]
    /\ net' = {c \in net : HomeOf(c.queue) # b}
    /\ loan' = [q \in Queue |-> IF HomeOf(q) = b THEN None ELSE loan[q]]
    /\ restarted' = restarted \cup {b}
    /\ faults' = faults + 1
    /\ UNCHANGED <<saved, trust, unlocks, clientVars, length, done, begin, resets>>

\* An operator moves the offset of a group that is offline: everything from there on is to be consumed
\* again (or, forwards, to be skipped).                                                    (environment)
ResetOffset(q, o) ==
    /\ Fault("ResetOffset")
    /\ begin[q] # None /\ committed[q] # o /\ o <= length[q]
    /\ \A p \in Process : own[p][q] = "no"
    /\ ResetWhenQuiet => \A c \in net : c.queue # q
    /\ committed' = [committed EXCEPT ![q] = o]
    /\ saved' = IF DurableCommit THEN [saved EXCEPT ![q] = o] ELSE saved
    /\ done' = [done EXCEPT ![q] = {x \in @ : x < o} \cup begin[q]..(o - 1)]
    /\ begin' = [begin EXCEPT ![q] = IF o < @ THEN o ELSE @]
    /\ resets' = resets + 1
    /\ faults' = faults + 1
    /\ UNCHANGED <<net, members, clientVars, lockVars, length>>

\* An operator gives the topic more queues, or fewer.                                      (environment)
RouteChange(k) ==
    /\ Fault("RouteChange")
    /\ k # listed
    /\ listed' = k
    /\ faults' = faults + 1
    /\ UNCHANGED <<alive, route, view, own, next, cached, running, memory, members, lockVars, offsetVars, length, done, begin, resets>>

\* A producer's message reaches a queue.                                                   (environment)
ProduceMessage(q) ==
    /\ length[q] < Messages
    /\ length' = [length EXCEPT ![q] = @ + 1]
    /\ UNCHANGED <<members, clientVars, lockVars, offsetVars, done, begin, resets, faults>>

------------------------------------------------------------------------------
\* Whom a step may concern. Everybody: each action says what it needs. A large model narrows
\* these to those who can act, which spares TLC from trying the others.
Clients == Process                         \* who is up
Struck  == Process                         \* whom a fault may strike
Lists(p) == Broker                         \* whose list of members it may read
Commits == net
Unlocks == unlocks
PullPoints(p, q) == {next[p][q] + 1}       \* where a pull may end
Handed(p, q)     == cached[p][q]           \* what a listener may get
Returned(p, q)   == running[p][q]          \* what it may be done with

Next ==
    \/ \E p \in Clients, b \in Broker : Heartbeat(p, b)
    \/ \E p \in Clients : \E b \in Lists(p) : ViewRefresh(p, b)
    \/ \E p \in Clients : RouteRefresh(p)
    \/ \E p \in Clients, q \in Queue : ReleaseQueue(p, q) \/ CommitSend(p, q)
    \/ \E p \in Clients, q \in Queue : \E o \in PullPoints(p, q) : PullMessages(p, q, o)
    \/ \E p \in Clients, q \in Queue, fine \in BOOLEAN : AcquireQueue(p, q, fine) \/ LockQueue(p, q, fine)
    \/ \E p \in Clients, q \in Queue : \E o \in Handed(p, q) : ConsumeStart(p, q, o)
    \/ \E p \in Process, q \in Queue : \E o \in Returned(p, q) : ConsumeFinish(p, q, o, TRUE) \/ ConsumeFinish(p, q, o, FALSE)
    \/ \E p \in Process, q \in Queue : TrustExpire(p, q)
    \/ \E p \in Process, b \in Broker : RemoveMember(b, p)
    \/ \E p \in Process : ConsumerResume(p)
    \/ \E c \in Commits : CommitOffset(c) \/ LoseCommit(c)
    \/ \E b \in Broker : PersistOffsets(b) \/ RestartBroker(b)
    \/ \E u \in Unlocks : UnlockQueue(u)
    \/ \E q \in Queue : LoanExpire(q) \/ ProduceMessage(q)
    \/ \E p \in Struck : Leave(p) \/ ConsumerDeath(p) \/ ConsumerPause(p)
    \/ \E q \in Queue, o \in Offset : ResetOffset(q, o)
    \/ \E k \in Queue : RouteChange(k)

Spec == Init /\ [][Next]_vars

\* What clients and brokers keep doing. A lock may be refused, or its trust run out, any number of times
\* before the queue is taken, hence the strong form.
ClientsKeepGoing ==
    /\ \A p \in Process, b \in Broker : WF_vars(Heartbeat(p, b)) /\ WF_vars(ViewRefresh(p, b))
    /\ \A p \in Process, q \in Queue : WF_vars(ReleaseQueue(p, q)) /\ SF_vars(AcquireQueue(p, q, TRUE)) /\ SF_vars(LockQueue(p, q, TRUE))
    /\ \A p \in Process, q \in Queue : WF_vars(\E o \in Offset : ConsumeFinish(p, q, o, TRUE))
    /\ \A p \in Process : WF_vars(ConsumerResume(p)) /\ WF_vars(RouteRefresh(p))
    /\ \A p \in Process, q \in Queue : WF_vars(own[p][q] = "no" /\ ~InShare(p, q) /\ TrustExpire(p, q))   \* nobody renews it
    /\ \A q \in Queue : SF_vars(LoanExpire(q))
    /\ WF_vars(\E u \in unlocks : UnlockQueue(u))
BrokersNotice == \A p \in Process, b \in Broker : WF_vars(alive[p] # "up" /\ RemoveMember(b, p))
FairSpec == Spec /\ ClientsKeepGoing /\ BrokersNotice
\* As above, but a broker may count a dead connection for ever.
HalfDeadSpec == Spec /\ ClientsKeepGoing

------------------------------------------------------------------------------
\* Safety.
Lives    == {"up", "paused", "dead", "left"}
Holdings == {"no", "yes", "dropped"}
Known    == Offset \cup {None}
TypeOK ==
    /\ \A p \in Process :
        /\ alive[p] \in Lives /\ view[p] \subseteq Process /\ route[p] \in Queue
        /\ \A q \in Queue :
            /\ own[p][q] \in Holdings /\ next[p][q] \in Offset /\ memory[p][q] \in Known
            /\ cached[p][q] \subseteq Offset
            /\ running[p][q] \subseteq cached[p][q] \/ alive[p] = "left"
            /\ own[p][q] = "no" => cached[p][q] = {} /\ memory[p][q] = None
            /\ ~Orderly => ~trust[p][q] /\ own[p][q] # "dropped"
            /\ own[p][q] # "no" \/ trust[p][q] => Live(p)
    /\ \A b \in Broker : members[b] \subseteq Process
    /\ \A q \in Queue : committed[q] \in Known /\ saved[q] \in Known /\ (loan[q] = None \/ loan[q] \in Ids)
    /\ Cardinality(net) <= MaxNet /\ faults <= MaxFaults

\* Every message of q below o, from where the group began, was consumed.
ConsumedTo(q, o) == begin[q] # None => begin[q]..(o - 1) \subseteq done[q]

\* Every message below the committed offset was consumed.
CommittedOffsetNeverAhead == \A q \in Queue : ConsumedTo(q, committed[q]) /\ ConsumedTo(q, saved[q])
\* So is every message below an offset that may still become the committed one.
CommitsNeverAhead ==
    /\ \A c \in net : ConsumedTo(c.queue, c.offset)
    /\ \A p \in Process, q \in Queue : ConsumedTo(q, memory[p][q])

\* No message is skipped that was neither consumed nor handed to retry: what the owner of a queue has passed
\* is consumed, or is in its own cache.
NoSkippedOffset ==
    \A p \in Process, q \in Queue : own[p][q] = "yes" =>
        begin[q]..(next[p][q] - 1) \subseteq done[q] \cup cached[p][q]

\* No two consumers trust the same queue at the same time.
OneOwnerPerQueue == \A q \in Queue : Cardinality({p \in Process : trust[p][q]}) <= 1
\* What a client trusts, its broker has lent to it, unless it has forgotten all loans.
TrustIsBacked == \A p \in Process, q \in Queue : trust[p][q] /\ HomeOf(q) \notin restarted => loan[q] = Id(p)
\* No two listeners have messages of the same queue at the same time (orderly).
OneListenerPerQueue == Orderly => \A q \in Queue : Cardinality({p \in Process : running[p][q] # {}}) <= 1
\* A listener gets a message only when all older ones are done (orderly).
OrderlyInOrder ==
    Orderly => \A p \in Process, q \in Queue : /\ Cardinality(running[p][q]) <= 1
                                               /\ \A o \in running[p][q] : ConsumedTo(q, o)
\* No two consumers have a queue in their tables at the same time. (Not promised: see W-01.)
OneTablePerQueue == \A q \in Queue : Cardinality({p \in Process : own[p][q] = "yes"}) <= 1

\* The same, when every client has just read the list of some broker and acted on it.
OneTableWhenViewsFresh ==
    (\A p \in Process : alive[p] = "up" => /\ \E b \in Broker : view[p] = members[b]
                                           /\ \A q \in Queue : own[p][q] # "no" => InShare(p, q)) => OneTablePerQueue

\* A committed offset falls only by an explicit reset.
CommittedOffsetMonotone == [][\A q \in Queue : committed'[q] < committed[q] => resets' > resets]_vars

------------------------------------------------------------------------------
\* Liveness: faults are finite.
Stable == {p \in Process : alive[p] = "up"} # {}
Owned  == \A q \in Queue : Cardinality({p \in Process : alive[p] = "up" /\ own[p][q] = "yes"}) = IF q <= listed THEN 1 ELSE 0
AllQueuesOwned == <>[](Stable => Owned)
\* The same for one survivor of two (W-10): a client that died and came back under its old id.
AllQueuesOwnedAfterDeath == <>[](Cardinality({p \in Process : alive[p] = "up"}) = 1 => Owned)

------------------------------------------------------------------------------
\* What the users of a group see: effects, and the point up to which they are settled.
Abstract == INSTANCE RebalanceAbstract WITH
    Queue <- Queue, Offset <- Offset, None <- None,
    settled <- committed,
    happened <- done,
    origin <- begin,
    busy <- [q \in Queue |-> IF Orderly THEN {p \in Process : running[p][q] # {}} ELSE {}]
Refines == Abstract!Spec
==============================================================================
