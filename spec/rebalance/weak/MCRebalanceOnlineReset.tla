------------------------ MODULE MCRebalanceOnlineReset ------------------------
(***************************************************************************)
(* Rebalance with long polls and with a reset of a group that is online    *)
(* (W-20). A client that has fetched everything leaves a poll at the       *)
(* broker, for up to 15 s. An empty answer also says how far the queue was *)
(* read: if the client has no message of the queue in hand it takes that   *)
(* as its offset. A reset empties the client's entry of the queue, waits   *)
(* 10 s, moves the offset back and starts over. Nobody recalls the poll;   *)
(* its answer looks at the emptied entry, finds nothing in hand, and lifts *)
(* the offset over everything that was to be consumed again.               *)
(*                                                                         *)
(* The wait is left out: what happens in it changes nothing that the end   *)
(* of the reset does not set. So is the order of the reset's own commit    *)
(* and the query behind it (W-21), a restart of the broker (it ends every  *)
(* poll) and orderly consumption.                                          *)
(***************************************************************************)
EXTENDS MCRebalance

CONSTANT IgnoreLateAnswers   \* the repair: the answer to a poll of an entry that is gone is ignored

VARIABLE polls               \* polls in flight: [client, queue, offset, late]; late: its entry is gone, and was empty

onlineVars == <<vars, polls>>

\* What becomes of a poll when something else happens: it dies with its client, a pull that finds messages answers it,
\* and if its entry goes it is late. An entry that goes with messages in hand keeps them: then its answer says nothing.
Unanswered(a) == /\ alive'[a.client] \in {"up", "paused"}
                 /\ a.late \/ next'[a.client][a.queue] = a.offset \/ own'[a.client][a.queue] # "yes"
                 /\ ~a.late /\ own'[a.client][a.queue] # "yes" => cached[a.client][a.queue] = {}
Aged(a) == [a EXCEPT !.late = @ \/ own'[a.client][a.queue] # "yes"]
Elsewhere == Next /\ polls' = {Aged(a) : a \in {b \in polls : Unanswered(b)}}

\* A client that has everything: asks for more, and waits.                                     pull_messages
PollSend(p, q) ==
    /\ alive[p] = "up" /\ own[p][q] = "yes"
    /\ next[p][q] = length[q]
    /\ \A a \in polls : ~(a.client = p /\ a.queue = q /\ ~a.late)
    /\ polls' = polls \cup {[client |-> p, queue |-> q, offset |-> next[p][q], late |-> FALSE]}
    /\ UNCHANGED vars

\* There was nothing. With no message in hand the client's offset is where it asked, but never lower than before.
InHand(a) == IF a.late THEN {} ELSE cached[a.client][a.queue]
Counts(a) == /\ own[a.client][a.queue] = "yes"     \* else the next look at its offsets removes the one of this queue
             /\ InHand(a) = {}
             /\ ~(a.late /\ IgnoreLateAnswers)
PollAnswer(a) ==
    /\ alive[a.client] = "up"
    /\ polls' = polls \ {a}
    /\ memory' = IF Counts(a) THEN [memory EXCEPT ![a.client][a.queue] = Max(@, a.offset)] ELSE memory
    /\ UNCHANGED <<alive, listed, route, view, own, next, cached, running, members, lockVars, offsetVars, histVars>>

\* The broker tells the only owner of q to begin again at o.                               (environment)
OnlineReset(p, q, o) ==
    /\ Fault("OnlineReset")
    /\ alive[p] = "up" /\ own[p][q] = "yes"
    /\ \A r \in Process \ {p} : own[r][q] = "no"
    /\ committed[q] \notin {None, o} /\ o <= length[q]      \* a broker resets what it knows an offset of
    /\ ResetWhenQuiet => \A c \in net : c.queue # q
    /\ Forget(p, q)
    /\ polls' = {[a EXCEPT !.late = @ \/ (a.client = p /\ a.queue = q)] : a \in polls}
    /\ committed' = [committed EXCEPT ![q] = o]
    /\ saved' = IF DurableCommit THEN [saved EXCEPT ![q] = o] ELSE saved
    /\ done' = [done EXCEPT ![q] = {x \in @ : x < o} \cup begin[q]..(o - 1)]
    /\ begin' = [begin EXCEPT ![q] = IF o < @ THEN o ELSE @]
    /\ resets' = resets + 1
    /\ faults' = faults + 1
    /\ UNCHANGED <<alive, listed, route, view, net, members, lockVars, length>>

OnlineNext ==
    \/ Elsewhere
    \/ \E p \in Process, q \in Queue : PollSend(p, q)
    \/ \E a \in polls : PollAnswer(a)
    \/ \E p \in Process, q \in Queue, o \in Offset : OnlineReset(p, q, o)
OnlineSpec == Init /\ polls = {} /\ [][OnlineNext]_onlineVars

------------------------------------------------------------------------------
\* Double entry (see MCRebalanceCauses): who may act, and what a step does.
Up(p)        == alive[p] = "up"
PollsOf(p, q) == {a \in polls : <<a.client, a.queue>> = <<p, q>>}
PollGuards ==
    /\ \A a \in polls : ENABLED PollAnswer(a) <=> Up(a.client)
    /\ \A p \in Process, q \in Queue :
        /\ Cardinality({a \in PollsOf(p, q) : ~a.late}) <= 1
        /\ ENABLED PollSend(p, q) <=> Up(p) /\ own[p][q] = "yes" /\ next[p][q] >= length[q] /\ \A a \in PollsOf(p, q) : a.late
        /\ \A o \in Offset : ENABLED OnlineReset(p, q, o)
            <=> /\ "OnlineReset" \in Faults /\ faults + 1 <= MaxFaults /\ Up(p)
                /\ {r \in Process : own[r][q] # "no"} = {p} /\ own[p][q] = "yes"
                /\ committed[q] >= 0 /\ o \in (0..length[q]) \ {committed[q]}
                /\ ResetWhenQuiet => {c \in net : c.queue = q} = {}
Later(p, q)  == {[a EXCEPT !.late = TRUE] : a \in PollsOf(p, q)}
PollSteps == [][
    /\ \A p \in Process, q \in Queue :
        /\ PollSend(p, q) => /\ vars' = vars /\ polls \subseteq polls'
                             /\ polls' \ polls = {[client |-> p, queue |-> q, offset |-> length[q], late |-> FALSE]}
        /\ \A o \in Offset : OnlineReset(p, q, o) =>
            /\ own'[p][q] = "no" /\ next'[p][q] = 0 /\ cached'[p][q] = {} /\ running'[p][q] = {} /\ memory'[p][q] = None
            /\ committed'[q] = o /\ saved'[q] = IF DurableCommit THEN o ELSE saved[q]
            /\ begin'[q] = IF o < begin[q] THEN o ELSE begin[q]
            /\ \A x \in Offset : x \in done'[q] <=> x < o /\ (x \in done[q] \/ x >= begin[q])
            /\ faults' = faults + 1 /\ resets' = resets + 1
            /\ polls' = (polls \ PollsOf(p, q)) \cup Later(p, q)
            /\ \A r \in Process, x \in Queue : <<r, x>> # <<p, q>> =>
                own'[r][x] = own[r][x] /\ next'[r][x] = next[r][x] /\ cached'[r][x] = cached[r][x] /\ memory'[r][x] = memory[r][x]
            /\ UNCHANGED <<alive, route, view, members, net, length>>
    /\ \A a \in polls : PollAnswer(a) =>
        LET p == a.client
            q == a.queue
        IN  /\ polls' = polls \ {a}
            /\ memory'[p][q] = IF own[p][q] = "yes" /\ memory[p][q] < a.offset
                                  /\ (IF a.late THEN ~IgnoreLateAnswers ELSE cached[p][q] = {})
                               THEN a.offset ELSE memory[p][q]
            /\ UNCHANGED <<alive, own, next, cached, running, members, lockVars, offsetVars, histVars>>
    \* A poll outlives its entry only if that was empty; nothing but a pull, its answer or the end of its client ends it.
    /\ faults' = faults /\ resets' = resets => \A p \in Process, q \in Queue :
        /\ own'[p][q] = own[p][q] /\ next'[p][q] = next[p][q] /\ PollsOf(p, q) # PollsOf(p, q)' =>
            (\E a \in PollsOf(p, q) : PollAnswer(a)) \/ PollSend(p, q)
        /\ own[p][q] = "yes" /\ own'[p][q] = "no" => PollsOf(p, q)' = IF cached[p][q] = {} THEN Later(p, q) ELSE {a \in PollsOf(p, q) : a.late}
        /\ own'[p][q] = "yes" /\ next'[p][q] > next[p][q] /\ own[p][q] = "yes" => PollsOf(p, q)' = {a \in PollsOf(p, q) : a.late}
    /\ \A a \in polls' : alive'[a.client] \in {"up", "paused"}]_onlineVars
===============================================================================
