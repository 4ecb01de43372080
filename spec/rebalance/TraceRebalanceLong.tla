-------------------------- MODULE TraceRebalanceLong --------------------------
(***************************************************************************)
(* Is a long recorded trace of a broker and of its consumers a behaviour   *)
(* of Rebalance? The steps have the names that they have there. All groups *)
(* and topics of the broker are judged together, whatever their clients    *)
(* are; the state is what is not settled: of what a group has consumed,    *)
(* how far it is without a gap, and what lies behind a gap. What a message *)
(* is, is looked up in the trace, as in TraceStoreRecoveryLong.            *)
(*                                                                         *)
(* A place is a queue for a group, a member a client in a group, a holding *)
(* a member at a place. Clients that recorded nothing may do what they     *)
(* like: of their groups only the broker's steps are judged. Of clients    *)
(* that did (`by_clients`: all members of the group), every step is, and a *)
(* commit must not be ahead of what they consumed. A commit may arrive     *)
(* inside a pull, without an event of its own.                             *)
(*                                                                         *)
(* Which queues are in whose share depends on the order of the client ids  *)
(* and on a strategy; TraceRebalance judges that, in short traces.         *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC, TraceEvents

CONSTANTS
    Groups, Places, Holdings,   \* how many of each; they are numbered from 0
    Older                       \* whether the broker had a store before the trace began

VARIABLES
    taken,      \* how many events have been taken
    members,    \* members[g]: whom the broker counts
    sizes,      \* sizes[g]: how many they were lately, the newest last
    committed,  \* committed[p]: the offset that the broker knows, None, or Unknown after a power loss
    saved,      \* saved[p]: the offset in its file
    begin,      \* begin[p]: where the group began, None before
    prefix,     \* prefix[p]: every message before it was consumed, from where the group began
    ahead,      \* ahead[p]: what else was consumed
    loan,       \* loan[p]: [holder, since]; nobody has a loan that is None
    restarted,  \* the broker has forgotten loans that clients may still trust
    own,        \* own[h]: Held, Dropped (given up, a listener still runs) or Free
    next,       \* next[h]: where it pulls next
    low,        \* low[h]: the first message that it has pulled and not finished
    finished,   \* finished[h]: what it has finished beyond that
    memory,     \* memory[h]: what it would commit: low, as it was when a message was finished last or nothing was left
    running     \* running[h]: what its listener has
brokerVars == <<members, sizes, committed, saved, loan, restarted>>
groupVars  == <<begin, prefix, ahead>>
clientVars == <<own, next, low, finished, memory, running>>
vars == <<taken, brokerVars, groupVars, clientVars>>

Free    == 0
Held    == 1
Dropped == 2
None    == -1
Unknown == -2
Group   == 0..(Groups - 1)
Place   == 0..(Places - 1)
Holding == 0..(Holdings - 1)
NoLoan  == [holder |-> None, since |-> 0]
LoanMs  == 60000    \* how long a broker lends
Lately  == 8        \* an answer may be that old: so many changes of the members

Least(a, b)    == IF a <= b THEN a ELSE b
Greatest(a, b) == IF a >= b THEN a ELSE b

Init ==
    /\ taken = 0
    /\ members = [g \in Group |-> {}] /\ sizes = [g \in Group |-> <<0>>]
    /\ committed = [p \in Place |-> IF Older THEN Unknown ELSE None] /\ saved = committed
    /\ begin = [p \in Place |-> None]
    /\ prefix = [p \in Place |-> 0] /\ ahead = [p \in Place |-> {}]
    /\ loan = [p \in Place |-> NoLoan] /\ restarted = Older
    /\ own = [h \in Holding |-> Free]
    /\ next = [h \in Holding |-> 0] /\ low = next /\ memory = next
    /\ finished = [h \in Holding |-> {}] /\ running = finished

------------------------------------------------------------------------------
\* The first number from n on that is not in S.
FirstNotIn(S, n) == IF n \notin S THEN n ELSE CHOOSE m \in {o + 1 : o \in S} : m > n /\ m \notin S /\ \A k \in n..(m - 1) : k \in S

\* Event e.of stored message number o of the queue, or it was there before the trace.
Stored(e, o) == IF e.of = 0 THEN Older ELSE
                /\ 0 < e.of /\ e.of <= taken
                /\ EventAt(e.of).action = "AppendMessage"
                /\ EventAt(e.of).topic = e.topic /\ EventAt(e.of).queue_offset = o

\* The messages themselves are judged elsewhere; here they are looked up.
Noted(e) == UNCHANGED <<brokerVars, groupVars, clientVars>>

Members(g, now) ==
    /\ members' = [members EXCEPT ![g] = now]
    /\ sizes' = IF now = members[g] THEN sizes
                ELSE [sizes EXCEPT ![g] = LET all == Append(@, Cardinality(now))
                                          IN  IF Len(all) > Lately THEN Tail(all) ELSE all]

Heartbeat(e) ==
    /\ Members(e.group, members[e.group] \cup {e.member})
    /\ UNCHANGED <<committed, saved, loan, restarted, groupVars, clientVars>>

\* The client's own step comes first, if it recorded any. The runner says, of each queue that it has, that it has Left it.
\* A consumer waits for its listeners, and ends those that take too long.
Left(e) ==
    /\ own[e.holding] # Free
    /\ own' = [own EXCEPT ![e.holding] = Free]
    /\ running' = [running EXCEPT ![e.holding] = {}]
    /\ UNCHANGED <<brokerVars, groupVars, next, low, finished, memory>>

Leave(e) ==
    IF e.by_client THEN UNCHANGED <<brokerVars, groupVars, clientVars>>
    ELSE /\ e.member \in members[e.group]
         /\ Members(e.group, members[e.group] \ {e.member})
         /\ UNCHANGED <<committed, saved, loan, restarted, groupVars, clientVars>>

RemoveMember(e) ==
    /\ e.member \in members[e.group]
    /\ Members(e.group, members[e.group] \ {e.member})
    /\ UNCHANGED <<committed, saved, loan, restarted, groupVars, clientVars>>

\* A route event of the member, about the topic.
Routed(e) == /\ 0 < e.route /\ e.route <= taken
             /\ EventAt(e.route).action = "RouteRefresh" /\ EventAt(e.route).member = e.member

\* The answer may be a little older than what the broker counts now; where there are other brokers, it may be theirs.
ViewRefresh(e) ==
    /\ e.members > 0
    /\ Routed(e)
    /\ e.by_one => \E i \in DOMAIN sizes[e.group] : sizes[e.group][i] = e.members
    /\ UNCHANGED <<brokerVars, groupVars, clientVars>>

RouteRefresh(e) == e.queues >= 0 /\ UNCHANGED <<brokerVars, groupVars, clientVars>>

------------------------------------------------------------------------------
(* The consumer *)

\* Event i is a list of members that the member read.
Viewed(i, e) == 0 < i /\ i <= taken /\ EventAt(i).action = "ViewRefresh" /\ EventAt(i).member = e.member

\* Who consumes in order has the loan, unless the broker has forgotten it.
Lent(e) == loan[e.place].holder = e.member \/ (restarted /\ loan[e.place].holder = None)

\* `route` is how the member knows the queue, `view` the list by which it is in its share, `of` a commit that the broker
\* may have answered with.
AcquireQueue(e) ==
    /\ own[e.holding] = Free
    /\ Routed(e) /\ Viewed(e.view, e)
    /\ e.by_orderly => Lent(e)
    /\ e.number < EventAt(e.route).queues
    /\ e.start_offset >= 0
    /\ \/ committed[e.place] \in {e.start_offset, Unknown}
       \/ committed[e.place] = None /\ begin[e.place] = None
       \/ begin[e.place] = e.start_offset      \* an answer from before the first commit
       \/ /\ 0 < e.of /\ e.of <= taken
          /\ EventAt(e.of).action = "CommitOffset" /\ EventAt(e.of).place = e.place
          /\ EventAt(e.of).after = e.start_offset
    /\ own' = [own EXCEPT ![e.holding] = Held]
    /\ next' = [next EXCEPT ![e.holding] = e.start_offset]
    /\ low' = [low EXCEPT ![e.holding] = e.start_offset]
    /\ memory' = [memory EXCEPT ![e.holding] = e.start_offset]
    /\ finished' = [finished EXCEPT ![e.holding] = {}]
    /\ running' = [running EXCEPT ![e.holding] = {}]
    /\ begin' = IF begin[e.place] = None THEN [begin EXCEPT ![e.place] = e.start_offset] ELSE begin
    /\ prefix' = IF begin[e.place] = None THEN [prefix EXCEPT ![e.place] = e.start_offset] ELSE prefix
    /\ UNCHANGED <<brokerVars, ahead>>

\* A concurrent listener that still runs finishes what nobody wants any more. An orderly one is waited for, and the queue
\* released again.
\* `acquired` is how it came by the queue, and `view` or `route` what it has read since; who consumes in order also gives
\* up what it cannot lock.
ReleaseQueue(e) ==
    /\ own[e.holding] # Free
    /\ ~e.by_orderly => /\ 0 < e.acquired /\ EventAt(e.acquired).action = "AcquireQueue"
                        /\ EventAt(e.acquired).holding = e.holding
                        /\ \/ Viewed(e.view, e) /\ e.view > e.acquired
                           \/ Routed(e) /\ e.route > e.acquired
    /\ e.consumed_to = (IF own[e.holding] = Held THEN memory[e.holding] ELSE None)
    /\ own' = [own EXCEPT ![e.holding] = IF e.by_orderly /\ running[e.holding] # {} THEN Dropped ELSE Free]
    /\ UNCHANGED <<brokerVars, groupVars, next, low, finished, memory, running>>

\* `of` stored the last message.
PullMessages(e) ==
    /\ own[e.holding] = Held
    /\ e.from_offset = next[e.holding] /\ e.next_offset >= e.from_offset
    /\ e.status = 0
    /\ e.next_offset > e.from_offset => Stored(e, e.next_offset - 1)
    /\ next' = [next EXCEPT ![e.holding] = e.next_offset]
    /\ UNCHANGED <<brokerVars, groupVars, own, low, finished, memory, running>>

\* `of` stored the message. Orderly: one at a time, the oldest one, and nobody else has the loan.
ConsumeStart(e) ==
    /\ own[e.holding] = Held
    /\ low[e.holding] <= e.queue_offset /\ e.queue_offset < next[e.holding]
    /\ e.queue_offset \notin finished[e.holding] \cup running[e.holding]
    /\ Stored(e, e.queue_offset) /\ (e.of # 0 => EventAt(e.of).message = e.message)
    /\ e.by_orderly => /\ running[e.holding] = {} /\ e.queue_offset = low[e.holding]
                       /\ Lent(e)
    /\ running' = [running EXCEPT ![e.holding] = @ \cup {e.queue_offset}]
    /\ UNCHANGED <<brokerVars, groupVars, own, next, low, finished, memory>>

\* Message o is done. A dropped queue is not committed any more, but what was done counts as consumed.
Done(e, o) ==
    LET mine == finished[e.holding] \cup {o}
        first == FirstNotIn(mine, low[e.holding])
        all == ahead[e.place] \cup (IF o >= prefix[e.place] THEN {o} ELSE {})
        done == FirstNotIn(all, prefix[e.place])
    IN  /\ low' = [low EXCEPT ![e.holding] = first]
        /\ finished' = [finished EXCEPT ![e.holding] = {x \in mine : x > first}]
        /\ prefix' = [prefix EXCEPT ![e.place] = done]
        /\ ahead' = [ahead EXCEPT ![e.place] = {x \in all : x > done}]

\* No event of a consumer: the runner says of each message that was pulled and is not wanted that it was Skipped, because
\* the group never consumed one with its tags. `of` is the dispatch that told the tags.
Skipped(e) ==
    /\ own[e.holding] = Held
    /\ low[e.holding] <= e.queue_offset /\ e.queue_offset < next[e.holding]
    /\ 0 < e.of /\ e.of <= taken
    /\ EventAt(e.of).action = "DispatchMessage" /\ EventAt(e.of).topic = e.topic
    /\ EventAt(e.of).queue_offset = e.queue_offset /\ EventAt(e.of).tags_code = e.tags_code
    /\ Done(e, e.queue_offset)
    /\ memory' = [memory EXCEPT ![e.holding] = IF low'[e.holding] = next[e.holding] THEN next[e.holding] ELSE @]
    /\ UNCHANGED <<brokerVars, begin, own, next, running>>

ConsumeFinish(e) ==
    /\ e.queue_offset \in running[e.holding]
    /\ Stored(e, e.queue_offset) /\ (e.of # 0 => EventAt(e.of).message = e.message)
    /\ running' = [running EXCEPT ![e.holding] = @ \ {e.queue_offset}]
    /\ IF e.status = 0 THEN Done(e, e.queue_offset) /\ memory' = [memory EXCEPT ![e.holding] = Greatest(@, low'[e.holding])]
       ELSE e.status = 1 /\ UNCHANGED <<low, finished, memory, prefix, ahead>>
    /\ UNCHANGED <<brokerVars, begin, own, next>>

CommitSend(e) ==
    /\ own[e.holding] = Held
    /\ e.offset = memory[e.holding]
    /\ UNCHANGED <<brokerVars, groupVars, clientVars>>

\* `of` lent it to the member, which may have given it up since.
TrustExpire(e) ==
    /\ e.by_orderly
    /\ 0 < e.of /\ e.of <= taken
    /\ EventAt(e.of).action = "LockQueue" /\ EventAt(e.of).holding = e.holding
    /\ UNCHANGED <<brokerVars, groupVars, clientVars>>

------------------------------------------------------------------------------
(* The broker *)

\* `of` is what a member said last of this offset: that it sends it, that it gives the queue up with it, that it took the
\* queue there, or that it leaves with it.
Sent(e) ==
    /\ 0 < e.of /\ e.of <= taken
    /\ EventAt(e.of).place = e.place
    /\ LET sent == EventAt(e.of)
       IN  CASE sent.action = "CommitSend"   -> sent.offset = e.after
             [] sent.action = "ReleaseQueue" -> sent.consumed_to = e.after
             [] sent.action = "AcquireQueue" -> sent.start_offset = e.after
             [] sent.action = "Left"         -> memory[sent.holding] = e.after
             [] OTHER -> FALSE

\* Nothing is committed that was not consumed, as far as consumers told. The first commit says where a group begins, and so
\* does one after a crash that came before the offset was in the file: it comes before the member takes the queue. One that
\* is within what was consumed changes nothing there: another member may still take the queue where the group began, with
\* an answer from before this commit.
CommitOffset(e) ==
    LET anew == begin[e.place] = None \/ (e.before = None /\ e.after > prefix[e.place])
    IN  /\ committed[e.place] \in {e.before, Unknown}
        /\ e.after >= 0 /\ e.before >= None
        /\ e.by_clients => /\ anew \/ e.after <= prefix[e.place]
                           /\ e.before \in {None, e.after} \/ Sent(e)
        /\ committed' = [committed EXCEPT ![e.place] = e.after]
        /\ begin' = IF anew THEN [begin EXCEPT ![e.place] = e.after] ELSE begin
        /\ prefix' = IF anew THEN [prefix EXCEPT ![e.place] = Greatest(@, e.after)] ELSE prefix
        /\ UNCHANGED <<members, sizes, saved, loan, restarted, ahead, clientVars>>

PersistOffsets(e) == saved' = committed /\ UNCHANGED <<members, sizes, committed, loan, restarted, groupVars, clientVars>>

\* The clock of a loan is that of the broker.
LockQueue(e) ==
    /\ e.granted = 1
    /\ loan[e.place].holder \in {None, e.member}
    /\ e.at_ms >= loan[e.place].since
    /\ loan' = [loan EXCEPT ![e.place] = [holder |-> e.member, since |-> e.at_ms]]
    /\ UNCHANGED <<members, sizes, committed, saved, restarted, groupVars, clientVars>>

UnlockQueue(e) ==
    /\ loan[e.place].holder = e.member
    /\ e.at_ms >= loan[e.place].since
    /\ loan' = [loan EXCEPT ![e.place] = [holder |-> None, since |-> e.at_ms]]
    /\ UNCHANGED <<members, sizes, committed, saved, restarted, groupVars, clientVars>>

\* A loan ends when another member asks for it, which the next event tells.
LoanExpire(e) ==
    /\ loan[e.place].holder = e.member
    /\ taken + 2 <= EventCount
    /\ EventAt(taken + 2).action = "LockQueue" /\ EventAt(taken + 2).place = e.place
    /\ EventAt(taken + 2).at_ms - loan[e.place].since > LoanMs
    /\ loan' = [loan EXCEPT ![e.place] = [holder |-> None, since |-> @.since]]
    /\ UNCHANGED <<members, sizes, committed, saved, restarted, groupVars, clientVars>>

\* Members and loans are forgotten; offsets are those of the file, or nobody knows which after a power loss.
RestartBroker(e) ==
    /\ members' = [g \in Group |-> {}] /\ sizes' = [g \in Group |-> Append(sizes[g], 0)]
    /\ committed' = IF e.by_power THEN [p \in Place |-> Unknown] ELSE saved
    /\ saved' = committed'
    /\ loan' = [p \in Place |-> NoLoan] /\ restarted' = TRUE
    /\ UNCHANGED <<groupVars, clientVars>>

------------------------------------------------------------------------------
Step(e) ==
    CASE e.action \in {"AppendMessage", "DispatchMessage"} -> Noted(e)
      [] e.action = "Skipped"        -> Skipped(e)
      [] e.action = "ConsumeStart"   -> ConsumeStart(e)
      [] e.action = "ConsumeFinish"  -> ConsumeFinish(e)
      [] e.action = "PullMessages"   -> PullMessages(e)
      [] e.action = "CommitSend"     -> CommitSend(e)
      [] e.action = "CommitOffset"   -> CommitOffset(e)
      [] e.action = "Heartbeat"      -> Heartbeat(e)
      [] e.action = "Leave"          -> Leave(e)
      [] e.action = "Left"           -> Left(e)
      [] e.action = "RemoveMember"   -> RemoveMember(e)
      [] e.action = "ViewRefresh"    -> ViewRefresh(e)
      [] e.action = "RouteRefresh"   -> RouteRefresh(e)
      [] e.action = "AcquireQueue"   -> AcquireQueue(e)
      [] e.action = "ReleaseQueue"   -> ReleaseQueue(e)
      [] e.action = "TrustExpire"    -> TrustExpire(e)
      [] e.action = "PersistOffsets" -> PersistOffsets(e)
      [] e.action = "LockQueue"      -> LockQueue(e)
      [] e.action = "UnlockQueue"    -> UnlockQueue(e)
      [] e.action = "LoanExpire"     -> LoanExpire(e)
      [] e.action = "RestartBroker"  -> RestartBroker(e)
      [] OTHER -> FALSE

TraceNext == taken < EventCount /\ taken' = taken + 1 /\ Step(EventAt(taken + 1))
TraceSpec == Init /\ [][TraceNext]_vars

\* How far it has come; TLC prints it now and then.
Tell == IF taken % 1000 = 0 \/ taken = EventCount THEN PrintT(<<"taken", taken>>) ELSE TRUE
==============================================================================
