-------------------------- MODULE MCRebalanceCauses --------------------------
(***************************************************************************)
(* Double entry for Rebalance: who may act and when (GuardsStand), and     *)
(* what a step does and to whom (...Step). These say nothing new; they are *)
(* here so that no guard and no effect of an action can be lost unnoticed, *)
(* and they share no definition with the actions.                          *)
(***************************************************************************)
EXTENDS MCRebalance

Up(p)          == alive[p] = "up"
Strikes(name)  == name \in Faults /\ faults + 1 <= MaxFaults
NameOf(p)      == IF SharedId THEN 1 ELSE p
KeeperOf(q)    == CHOOSE b \in Broker : (q + Queues * Brokers - b) % Brokers = 0
Busy(p)        == \E q \in Queue : running[p][q] # {}
Some(q)        == [queue : {q}, offset : Offset]

\* Who gets queue q of n among c members, by place from 0: the first n % c members get one queue more than the others.
PlaceFor(q, n, c) ==
    LET few  == n \div c
        many == (n % c) * (few + 1)
    IN  IF q <= many THEN (q - 1) \div (few + 1) ELSE (n % c) + (q - 1 - many) \div few
Names(v) == {NameOf(p) : p \in v}
ShareOf(v, p, n) ==
    LET c     == IF DedupIds THEN Cardinality(Names(v)) ELSE Cardinality(v)
        place == Cardinality(IF DedupIds THEN {x \in Names(v) : x < NameOf(p)} ELSE {r \in v : NameOf(r) < NameOf(p)})
    IN  IF NameOf(p) \in Names(v) THEN {q \in 1..n : PlaceFor(q, n, c) = place} ELSE {}
SharesAreAverage == \A v \in (SUBSET Process) \ {{}}, p \in Process, n \in Queue : Shares[v][p][n] = ShareOf(v, p, n)
Mine(p, q) == IF view[p] = {} THEN FALSE ELSE q \in ShareOf(view[p], p, route[p])

\* The lock of q: nobody else has it, and a broker that forgot who had it waits for those who may still trust it.
Free(p, q) == /\ loan[q] \notin {NameOf(r) : r \in Process} \ {NameOf(p)}
              /\ LockGrace /\ KeeperOf(q) \in restarted => {r \in Process : trust[r][q]} \subseteq {p}

\* For a configuration that looks at shares only.
Still == Init /\ [][FALSE]_vars

------------------------------------------------------------------------------
\* Who may act, and when: no less and no more.
GuardsStand ==
    /\ \A p \in Process :
        /\ ENABLED Leave(p) <=> Strikes("Leave") /\ Up(p) /\ (LeaveWaits => ~Busy(p))
        /\ ENABLED <<RouteRefresh(p)>>_vars <=> Up(p) /\ route[p] # listed
        /\ ENABLED ConsumerDeath(p) <=> Strikes("ConsumerDeath") /\ alive[p] \notin {"dead", "left"}
        /\ ENABLED ConsumerPause(p) <=> Strikes("ConsumerPause") /\ Up(p) /\ (ListenerBounded => ~Busy(p))
        /\ ENABLED ConsumerResume(p) <=> alive[p] = "paused"
        /\ \A b \in Broker :
            /\ ENABLED <<Heartbeat(p, b)>>_vars <=> Up(p) /\ p \notin members[b]
            /\ ENABLED Heartbeat(p, b) => p \notin members[b]
            /\ ENABLED <<ViewRefresh(p, b)>>_vars <=> Up(p) /\ members[b] \notin {{}, view[p]}
            /\ ENABLED RemoveMember(b, p) <=> p \in members[b] /\ (Up(p) => Strikes("RemoveMember"))
        /\ \A q \in Queue :
            /\ ENABLED <<ReleaseQueue(p, q)>>_vars
               <=> Up(p) /\ IF own[p][q] = "dropped" THEN running[p][q] = {} ELSE own[p][q] = "yes" /\ ~Mine(p, q)
            /\ ENABLED <<CommitSend(p, q)>>_vars
               <=> /\ Up(p) /\ own[p][q] = "yes" /\ memory[p][q] >= 0 /\ Cardinality(net) + 1 <= MaxNet
                   /\ [queue |-> q, offset |-> memory[p][q]] \notin net
            /\ ENABLED TrustExpire(p, q) <=> trust[p][q] /\ (ListenerBounded => running[p][q] = {})
            /\ \A fine \in BOOLEAN :
                /\ ENABLED AcquireQueue(p, q, fine)
                   <=> /\ Up(p) /\ own[p][q] = "no" /\ Mine(p, q) /\ (Orderly => trust[p][q])
                       /\ ~fine => Strikes("QueryError") /\ ~QueryErrorKnown
                /\ ENABLED LockQueue(p, q, fine)
                   <=> /\ Orderly /\ Up(p) /\ (own[p][q] = "no" => Mine(p, q))
                       /\ ~fine => Strikes("LoseAnswer") /\ Free(p, q)
            /\ \A o \in 0..(Messages + 1) :
                /\ ENABLED PullMessages(p, q, o) <=> Up(p) /\ own[p][q] = "yes" /\ o \in (next[p][q] + 1)..length[q]
                /\ ENABLED <<ConsumeStart(p, q, o)>>_vars
                   <=> /\ Up(p) /\ own[p][q] = "yes" /\ o \in cached[p][q] \ running[p][q]
                       /\ Orderly => trust[p][q] /\ running[p][q] = {} /\ \A older \in 0..(o - 1) : older \notin cached[p][q]
                /\ \A fine \in BOOLEAN :
                    ENABLED ConsumeFinish(p, q, o, fine) <=> o \in running[p][q] /\ (Up(p) \/ alive[p] = "left")
    /\ \A q \in Queue :
        /\ ENABLED LoanExpire(q) <=> loan[q] >= 0 /\ \A p \in Process : trust[p][q] => NameOf(p) # loan[q]
        /\ ENABLED ProduceMessage(q) <=> length[q] + 1 <= Messages
        /\ ENABLED RouteChange(q) <=> Strikes("RouteChange") /\ listed # q
        /\ \A o \in Offset :
            /\ ENABLED ResetOffset(q, o)
               <=> /\ Strikes("ResetOffset") /\ begin[q] >= 0 /\ o \in (0..length[q]) \ {committed[q]}
                   /\ {own[p][q] : p \in Process} = {"no"} /\ (ResetWhenQuiet => Some(q) \cap net = {})
            /\ ENABLED CommitOffset([queue |-> q, offset |-> o]) <=> [queue |-> q, offset |-> o] \in net
            /\ ENABLED LoseCommit([queue |-> q, offset |-> o]) <=> Strikes("LoseCommit") /\ [queue |-> q, offset |-> o] \in net
        /\ \A id \in {NameOf(p) : p \in Process} :
            ENABLED UnlockQueue([id |-> id, queue |-> q]) <=> [id |-> id, queue |-> q] \in unlocks
    /\ \A b \in Broker :
        /\ ENABLED PersistOffsets(b) <=> \E q \in Queue : KeeperOf(q) = b /\ saved[q] # committed[q]
        /\ ENABLED RestartBroker(b) <=> Strikes("RestartBroker")

------------------------------------------------------------------------------
\* What a step does, and to whom.
Faulty      == faults' = faults + 1
Peaceful    == UNCHANGED <<faults, resets>>
OthersKeep(p)    == \A r \in Process \ {p} : /\ alive'[r] = alive[r] /\ route'[r] = route[r] /\ view'[r] = view[r] /\ own'[r] = own[r]
                                             /\ next'[r] = next[r] /\ cached'[r] = cached[r] /\ running'[r] = running[r]
                                             /\ memory'[r] = memory[r] /\ trust'[r] = trust[r]
OtherQueues(p, q) == /\ OthersKeep(p) /\ alive'[p] = alive[p] /\ view'[p] = view[p] /\ route'[p] = route[p] /\ listed' = listed
                     /\ \A x \in Queue \ {q} : /\ own'[p][x] = own[p][x] /\ next'[p][x] = next[p][x] /\ cached'[p][x] = cached[p][x]
                                               /\ running'[p][x] = running[p][x] /\ memory'[p][x] = memory[p][x]
                                               /\ trust'[p][x] = trust[p][x]
OthersStay(q)     == \A x \in Queue \ {q} : /\ committed'[x] = committed[x] /\ saved'[x] = saved[x] /\ loan'[x] = loan[x]
                                            /\ length'[x] = length[x] /\ done'[x] = done[x] /\ begin'[x] = begin[x]
NothingLeft(p)    == \A q \in Queue : own'[p][q] = "no" /\ next'[p][q] = 0 /\ cached'[p][q] = {} /\ memory'[p][q] = None /\ ~trust'[p][q]
KnownOf(p, Q)     == {[queue |-> q, offset |-> memory[p][q]] : q \in {x \in Q : memory[p][x] >= 0}}
\* What is sent is in flight, if all of it finds room there; none of it otherwise.
Sent(commits)     == net' = IF Cardinality(net \cup commits) > MaxNet THEN net ELSE net \cup commits
First(q, fine)    == IF fine /\ committed[q] >= 0 THEN committed[q] ELSE IF StartAtLast THEN length[q] ELSE 0
MessagesStay      == UNCHANGED <<length, done, begin>>
BrokersStay       == UNCHANGED <<committed, saved, net, members>>

MembersStep == [][
    /\ \A p \in Process, b \in Broker :
        /\ Heartbeat(p, b) => /\ members'[b] = members[b] \cup {p} /\ \A c \in Broker \ {b} : members'[c] = members[c]
                              /\ UNCHANGED <<clientVars, lockVars, offsetVars, histVars>>
        /\ RemoveMember(b, p) => /\ members'[b] = members[b] \ {p} /\ \A c \in Broker \ {b} : members'[c] = members[c]
                                 /\ (Faulty <=> Up(p)) /\ (~Up(p) => faults' = faults) /\ MessagesStay
                                 /\ UNCHANGED <<resets, clientVars, lockVars, offsetVars>>
        /\ ViewRefresh(p, b) => /\ view'[p] = members[b] /\ view'[p] # {} /\ OthersKeep(p)
                                /\ UNCHANGED <<alive, members, listed, route, own, next, cached, running, memory, lockVars, offsetVars, histVars>>
    /\ \A p \in Process :
        /\ RouteRefresh(p) => /\ route'[p] = listed /\ OthersKeep(p)
                              /\ UNCHANGED <<alive, members, listed, view, own, next, cached, running, memory, lockVars, offsetVars, histVars>>
        /\ Leave(p) =>
            /\ alive'[p] = "left" /\ view'[p] = {} /\ route'[p] = route[p] /\ OthersKeep(p) /\ NothingLeft(p)
            /\ \A q \in Queue : running'[p][q] = IF Orderly THEN running[p][q] ELSE {}
            /\ \A b \in Broker : members'[b] = {r \in members[b] : r # p}
            /\ Sent(KnownOf(p, Queue))
            /\ \A q \in Queue : loan'[q] = IF trust[p][q] /\ loan[q] = NameOf(p) THEN None ELSE loan[q]
            /\ Faulty /\ MessagesStay /\ UNCHANGED <<resets, listed, unlocks, restarted, committed, saved>>
        /\ ConsumerDeath(p) =>
            /\ alive'[p] = "dead" /\ view'[p] = {} /\ route'[p] = route[p] /\ OthersKeep(p) /\ NothingLeft(p)
            /\ \A q \in Queue : running'[p][q] = {}
            /\ unlocks' = {u \in unlocks : \E r \in Process : r # p /\ NameOf(r) = u.id}
            /\ Faulty /\ MessagesStay /\ BrokersStay /\ UNCHANGED <<resets, listed, loan, restarted>>
        /\ ConsumerPause(p) => /\ alive'[p] = "paused" /\ OthersKeep(p) /\ Faulty /\ MessagesStay
                               /\ UNCHANGED <<resets, listed, route, view, own, next, cached, running, memory, members, lockVars, offsetVars>>
        /\ ConsumerResume(p) => /\ alive'[p] = "up" /\ OthersKeep(p) /\ MessagesStay /\ Peaceful
                                /\ UNCHANGED <<listed, route, view, own, next, cached, running, memory, members, lockVars, offsetVars>>
    /\ \A k \in Queue : RouteChange(k) => /\ listed' = k /\ Faulty /\ MessagesStay
                                          /\ UNCHANGED <<resets, alive, route, view, own, next, cached, running, memory, members, lockVars, offsetVars>>]_vars

QueuesStep == [][\A p \in Process, q \in Queue :
    /\ ReleaseQueue(p, q) =>
        /\ OtherQueues(p, q) /\ OthersStay(q) /\ Sent(KnownOf(p, {q})) /\ memory'[p][q] = None
        /\ IF running[p][q] # {} /\ Orderly
           THEN own'[p][q] = "dropped" /\ UNCHANGED <<next, cached, running, lockVars>>
           ELSE /\ own'[p][q] = "no" /\ next'[p][q] = 0 /\ cached'[p][q] = {} /\ running'[p][q] = {} /\ ~trust'[p][q]
                /\ IF Orderly /\ cached[p][q] # {}
                   THEN unlocks' = unlocks \cup {[id |-> NameOf(p), queue |-> q]} /\ loan' = loan
                   ELSE unlocks' = unlocks /\ loan'[q] = IF loan[q] = NameOf(p) THEN None ELSE loan[q]
        /\ MessagesStay /\ Peaceful /\ UNCHANGED <<members, committed, saved, restarted>>
    /\ \A fine \in BOOLEAN :
        /\ AcquireQueue(p, q, fine) =>
            /\ OtherQueues(p, q) /\ OthersStay(q) /\ own'[p][q] = "yes" /\ next'[p][q] = First(q, fine)
            /\ memory'[p][q] = IF CommitStart THEN First(q, fine) ELSE IF fine THEN committed[q] ELSE None
            /\ committed'[q] = IF CommitStart /\ committed[q] < 0 THEN First(q, fine) ELSE committed[q]
            /\ saved'[q] = IF CommitStart /\ DurableCommit /\ saved[q] < 0 THEN First(q, fine) ELSE saved[q]
            /\ begin'[q] = IF begin[q] < 0 THEN First(q, fine) ELSE begin[q]
            /\ (~fine => Faulty) /\ (fine => faults' = faults)
            /\ UNCHANGED <<cached, running, members, net, lockVars, length, done, resets>>
        /\ LockQueue(p, q, fine) =>
            /\ loan'[q] = (IF Free(p, q) THEN NameOf(p) ELSE loan[q]) /\ OthersStay(q) /\ OtherQueues(p, q)
            /\ trust'[p][q] = IF fine THEN Free(p, q) ELSE trust[p][q]
            /\ unlocks' = unlocks \ (IF Free(p, q) /\ CancelUnlock THEN {[id |-> NameOf(p), queue |-> q]} ELSE {})
            /\ (~fine => Faulty) /\ (fine => faults' = faults)
            /\ MessagesStay /\ BrokersStay /\ UNCHANGED <<restarted, clientVars, resets>>
    /\ \A o \in 0..(Messages + 1) :
        /\ PullMessages(p, q, o) =>
            /\ OtherQueues(p, q) /\ next'[p][q] = o /\ cached'[p][q] = cached[p][q] \cup {x \in Offset : next[p][q] <= x /\ x < o}
            /\ MessagesStay /\ BrokersStay /\ Peaceful /\ UNCHANGED <<own, running, memory, lockVars>>
        /\ ConsumeStart(p, q, o) => /\ OtherQueues(p, q) /\ running'[p][q] = running[p][q] \cup {o}
                                    /\ MessagesStay /\ BrokersStay /\ Peaceful /\ UNCHANGED <<own, next, cached, memory, lockVars>>
        /\ \A fine \in BOOLEAN : ConsumeFinish(p, q, o, fine) =>
            LET unfinished == cached[p][q] \ {o}
                bound      == {x \in 0..next[p][q] : \A y \in 0..(x - 1) : y \notin unfinished}
            IN  /\ OtherQueues(p, q) /\ OthersStay(q) /\ running'[p][q] = {x \in running[p][q] : x # o}
                /\ done'[q] = IF fine THEN done[q] \cup {o} ELSE done[q]
                /\ cached'[p][q] = IF fine THEN unfinished ELSE cached[p][q]
                /\ IF fine /\ own[p][q] = "yes"
                   THEN memory'[p][q] >= memory[p][q] /\ memory'[p][q] \in bound \cup {memory[p][q]}
                        /\ \A x \in bound : x <= memory'[p][q]
                   ELSE memory'[p][q] = memory[p][q]
                /\ BrokersStay /\ Peaceful /\ UNCHANGED <<own, next, lockVars, length, begin>>
    /\ CommitSend(p, q) => /\ net' = net \cup KnownOf(p, {q})
                           /\ MessagesStay /\ Peaceful /\ UNCHANGED <<committed, saved, members, clientVars, lockVars>>
    /\ TrustExpire(p, q) => /\ ~trust'[p][q] /\ OtherQueues(p, q) /\ MessagesStay /\ BrokersStay /\ Peaceful
                            /\ UNCHANGED <<clientVars, loan, unlocks, restarted>>]_vars

BrokersStep == [][
    /\ \A q \in Queue :
        /\ \A o \in Offset :
            /\ CommitOffset([queue |-> q, offset |-> o]) =>
                /\ net' = net \ {[queue |-> q, offset |-> o]} /\ OthersStay(q)
                /\ committed'[q] = IF MonotoneCommit /\ committed[q] > o THEN committed[q] ELSE o
                /\ saved'[q] = IF DurableCommit THEN committed'[q] ELSE saved[q]
                /\ MessagesStay /\ Peaceful /\ UNCHANGED <<members, clientVars, lockVars>>
            /\ LoseCommit([queue |-> q, offset |-> o]) =>
                /\ net' = net \ {[queue |-> q, offset |-> o]} /\ Faulty
                /\ MessagesStay /\ UNCHANGED <<resets, committed, saved, members, clientVars, lockVars>>
            /\ ResetOffset(q, o) =>
                /\ committed'[q] = o /\ saved'[q] = (IF DurableCommit THEN o ELSE saved[q]) /\ OthersStay(q)
                /\ begin'[q] = (IF o < begin[q] THEN o ELSE begin[q])
                /\ \A x \in Offset : x \in done'[q] <=> x < o /\ (x \in done[q] \/ x >= begin[q])
                /\ Faulty /\ resets' = resets + 1 /\ UNCHANGED <<net, members, clientVars, lockVars, length>>
        /\ \A id \in {NameOf(p) : p \in Process} : UnlockQueue([id |-> id, queue |-> q]) =>
            /\ unlocks' = unlocks \ {[id |-> id, queue |-> q]} /\ OthersStay(q)
            /\ loan'[q] = IF loan[q] = id THEN None ELSE loan[q]
            /\ MessagesStay /\ BrokersStay /\ Peaceful /\ UNCHANGED <<trust, restarted, clientVars>>
        /\ LoanExpire(q) => /\ loan'[q] = None /\ OthersStay(q)
                            /\ MessagesStay /\ BrokersStay /\ Peaceful /\ UNCHANGED <<trust, unlocks, restarted, clientVars>>
        /\ ProduceMessage(q) => /\ length'[q] = length[q] + 1 /\ OthersStay(q)
                                /\ BrokersStay /\ Peaceful /\ UNCHANGED <<done, begin, clientVars, lockVars>>
    /\ \A b \in Broker :
        /\ PersistOffsets(b) => /\ \A q \in Queue : saved'[q] = IF KeeperOf(q) = b THEN committed[q] ELSE saved[q]
                                /\ MessagesStay /\ Peaceful /\ UNCHANGED <<committed, net, members, clientVars, lockVars>>
        /\ RestartBroker(b) =>
            /\ \A c \in Broker : members'[c] = IF c = b THEN {} ELSE members[c]
            /\ \A q \in Queue : IF KeeperOf(q) = b THEN committed'[q] = saved[q] /\ loan'[q] = None
                                ELSE committed'[q] = committed[q] /\ loan'[q] = loan[q]
            /\ net' = {c \in net : KeeperOf(c.queue) # b} /\ restarted' = restarted \cup {b}
            /\ Faulty /\ MessagesStay /\ UNCHANGED <<resets, saved, trust, unlocks, clientVars>>]_vars
==============================================================================
