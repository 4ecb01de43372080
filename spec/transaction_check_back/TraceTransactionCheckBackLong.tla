-------------------- MODULE TraceTransactionCheckBackLong --------------------
(***************************************************************************)
(* Is a long recorded trace of a broker a behaviour of                     *)
(* TransactionCheckBack? The steps have the names that they have there;    *)
(* the state is what is not settled yet: messages that are undecided,      *)
(* decisions without an op message, and the round that runs. What is       *)
(* settled is looked up in the trace, as in TraceStoreRecoveryLong: an     *)
(* event names the event that made what it speaks of, and every field of   *)
(* the one is compared with the other. A wrong hint can only refuse.       *)
(*                                                                         *)
(* The appends of the broker's log are part of the trace, so that offsets  *)
(* are those of records that are there: a half message, an op message, a   *)
(* final one and one that is set aside each have exactly one event that    *)
(* says why they were appended. Positions are bytes, offsets begin at 0.   *)
(*                                                                         *)
(* After a crash the rounds begin again where the offset file says, which  *)
(* may be older than the last event about it; and a broker that starts     *)
(* again has forgotten what was rolled back (see Undecided).               *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC, TraceEvents

CONSTANTS
    SyncFlush,  \* whether a put waits until it is durable
    CheckMax,   \* after so many checks a half message is set aside
    Batch,      \* how many op messages one pull returns
    Base        \* where the log ended before the trace began

\* The queues that matter have numbers of their own.
HalfQueue  == 0
OpQueue    == 1
AsideQueue == 2
Commit     == 8
Rollback   == 12

VARIABLES
    taken,      \* how many events have been taken
    wrote,      \* where the log ends
    flushed,    \* what is durable of it
    cuts,       \* where recovery has cut it: [at, to], at which event
    halves,     \* the number of the next half message; Unknown before the trace has said it
    listed,     \* the same of those that are dispatched: rounds meet no others; Unknown after a start, which dispatches all
    ops,        \* the number of the next op message
    fresh,      \* half messages that no event has explained yet: [half, message]
    newOps,     \* op messages of which no event has told yet
    asides,     \* messages whose set-aside copy no event has explained yet: [message, at]
    open,       \* messages of which nobody knows how they came out
    pending,    \* decisions without an op message: [half, message, decision]
    old,        \* undecided messages that are old enough to be asked for
    progress,   \* [half, op, at]: where the next round begins, and the end of the log that justified it
    saved,      \* [half, op]: the same, as it was handed to the offset file
    loose,      \* nobody knows how much of that the file has: a crash came
    forgot,     \* the last event that took the broker's memory with it
    round,      \* the running round, or Idle
    read,       \* how many of the op messages that it pulled have been looked at
    flipped     \* messages of which a bit has flipped: a round cannot read them

vars == <<taken, wrote, flushed, cuts, halves, listed, ops, fresh, newOps, asides, open, pending, old, progress, saved,
          loose, forgot, round, read, flipped>>
logVars == <<wrote, flushed, cuts, halves, listed, ops, newOps, asides>>
messageVars == <<fresh, open, pending, old>>
roundVars == <<progress, saved, loose, forgot, round, read>>

Unknown == -1
Nowhere == -1
Idle == [on |-> FALSE, i |-> 0, h0 |-> 0, start |-> 0, next |-> 0, last |-> Nowhere, pulled |-> FALSE, empty |-> FALSE,
         remove |-> {}, prefix |-> 0, done |-> {}, since |-> 0]

Least(a, b) == IF a <= b THEN a ELSE b
End(r) == r.physical_offset + r.size_bytes

Init ==
    /\ taken = 0
    /\ wrote = Base /\ flushed = Base /\ cuts = <<>>
    /\ halves = (IF Base = 0 THEN 0 ELSE Unknown) /\ ops = halves /\ listed = Unknown
    /\ fresh = {} /\ newOps = {} /\ asides = {}
    /\ open = {} /\ pending = {} /\ old = {}
    /\ progress = [half |-> 0, op |-> 0, at |-> 0] /\ saved = [half |-> 0, op |-> 0]
    /\ loose = (Base > 0) /\ forgot = 0
    /\ round = Idle /\ read = 0 /\ flipped = {}

------------------------------------------------------------------------------
(* Records *)

InLog(i) == \A c \in DOMAIN cuts : cuts[c].at > i => EventAt(i).physical_offset < cuts[c].to

\* Event i appended a record to queue q, and the log still has it.
Appended(i, q) ==
    /\ 0 < i /\ i <= taken
    /\ EventAt(i).action = "AppendMessage"
    /\ EventAt(i).queue = q
    /\ InLog(i)

\* Event i appended half message h of message m.
IsHalf(i, h, m) == IF i = 0 THEN Base > 0      \* from before the trace
                   ELSE Appended(i, HalfQueue) /\ EventAt(i).queue_offset = h /\ EventAt(i).message = m

NextIs(count, offset) == count \in {offset, Unknown}

AppendMessage(e) ==
    /\ e.physical_offset = wrote /\ e.size_bytes > 0
    /\ wrote' = End(e)
    /\ IF e.queue = HalfQueue
       THEN /\ NextIs(halves, e.queue_offset) /\ halves' = e.queue_offset + 1
            /\ fresh' = fresh \cup {[half |-> e.queue_offset, message |-> e.message]}
            /\ listed' = IF listed = Unknown THEN e.queue_offset ELSE listed
       ELSE UNCHANGED <<halves, fresh, listed>>
    /\ IF e.queue = OpQueue
       THEN NextIs(ops, e.queue_offset) /\ ops' = e.queue_offset + 1 /\ newOps' = newOps \cup {e.queue_offset}
       ELSE UNCHANGED <<ops, newOps>>
    /\ asides' = IF e.queue = AsideQueue THEN asides \cup {[message |-> e.message, at |-> taken + 1]} ELSE asides
    /\ UNCHANGED <<flushed, cuts, open, pending, old, roundVars>>

\* Of the half queue; `of` appended it.
DispatchMessage(e) ==
    /\ IF e.of = 0 THEN Base > 0 ELSE Appended(e.of, HalfQueue) /\ EventAt(e.of).queue_offset = e.queue_offset
    /\ listed' = IF listed = Unknown THEN Unknown ELSE e.queue_offset + 1
    /\ UNCHANGED <<wrote, flushed, cuts, halves, ops, newOps, asides, messageVars, roundVars>>

RollFile(e) ==
    /\ e.physical_offset = wrote /\ e.next_file_offset >= wrote
    /\ wrote' = e.next_file_offset
    /\ UNCHANGED <<flushed, cuts, halves, listed, ops, newOps, asides, messageVars, roundVars>>

FlushLog(e) ==
    /\ flushed <= e.flushed_to /\ e.flushed_to <= wrote
    /\ flushed' = e.flushed_to
    /\ UNCHANGED <<wrote, cuts, halves, listed, ops, newOps, asides, messageVars, roundVars>>

\* A start says what is left of the log; all of it is durable then.
TruncateLog(e) ==
    /\ e.valid_to <= wrote
    /\ wrote' = e.valid_to /\ flushed' = e.valid_to
    /\ cuts' = IF e.valid_to = wrote THEN cuts ELSE Append(cuts, [at |-> taken + 1, to |-> e.valid_to])
    /\ UNCHANGED <<halves, listed, ops, newOps, asides, messageVars, roundVars>>

\* No event of a broker: the runner says what a power loss took. The half or op queue is shorter: `of` appended its first
\* lost record.
Lost(e) ==
    /\ cuts # <<>>
    /\ 0 < e.of /\ e.of <= taken
    /\ EventAt(e.of).queue = e.queue /\ EventAt(e.of).queue_offset = e.queue_offset
    /\ ~InLog(e.of)
    /\ halves' = IF e.queue = HalfQueue THEN e.queue_offset ELSE halves
    /\ ops' = IF e.queue = OpQueue THEN e.queue_offset ELSE ops
    /\ fresh' = IF e.queue = HalfQueue THEN {f \in fresh : f.half < e.queue_offset} ELSE fresh
    /\ newOps' = IF e.queue = OpQueue THEN {o \in newOps : o < e.queue_offset} ELSE newOps
    /\ UNCHANGED <<wrote, flushed, cuts, listed, asides, open, pending, old, roundVars>>

\* ... and the message is undecided again: `of` appended what decided it, `again` a half message of it that is left.
Reopened(e) ==
    /\ cuts # <<>>
    /\ 0 < e.of /\ e.of <= taken /\ EventAt(e.of).action = "AppendMessage" /\ ~InLog(e.of)
    /\ Appended(e.again, HalfQueue) /\ EventAt(e.again).message = e.message
    /\ open' = open \cup {e.message}
    /\ UNCHANGED <<logVars, fresh, pending, old, roundVars>>

------------------------------------------------------------------------------
(* The producer's decision *)

\* `of` appended the half message.
SendHalf(e) ==
    /\ IsHalf(e.of, e.half_offset, e.message)
    /\ EventAt(e.of).physical_offset = e.physical_offset
    /\ e.check_times = 0
    /\ [half |-> e.half_offset, message |-> e.message] \in fresh
    /\ fresh' = fresh \ {[half |-> e.half_offset, message |-> e.message]}
    /\ open' = open \cup {e.message}
    /\ UNCHANGED <<logVars, pending, old, roundVars>>

\* `of` appended the half message, `sent` is the SendHalf of its message, `final` appended the final one, and `prior` is an
\* earlier decision: a later one never differs from it, and changes nothing but that another half message is decided.
EndTransaction(e) ==
    /\ IsHalf(e.of, e.half_offset, e.message)
    /\ e.decision \in {Commit, Rollback}
    /\ e.sent # 0 => /\ e.sent <= taken /\ EventAt(e.sent).action = "SendHalf"
                     /\ EventAt(e.sent).message = e.message
                     /\ EventAt(e.sent).actor = e.actor /\ EventAt(e.sent).queue = e.queue
    /\ e.sent = 0 => loose
    /\ IF e.message \in open \/ e.of = 0
       THEN e.decision = Commit =>
            /\ Appended(e.final, e.queue) /\ EventAt(e.final).message = e.message
            /\ e.final > e.of
            /\ e.status = 0 \/ (e.status = 1 /\ SyncFlush /\ End(EventAt(e.final)) > flushed)
       ELSE /\ 0 < e.prior /\ e.prior <= taken
            /\ EventAt(e.prior).action = "EndTransaction"
            /\ EventAt(e.prior).message = e.message /\ EventAt(e.prior).decision = e.decision
            /\ e.status = 0
    /\ e.decision = Rollback => e.status = 0
    /\ open' = open \ {e.message}
    /\ old' = old \ {e.message}
    /\ pending' = pending \cup {[half |-> e.half_offset, message |-> e.message, decision |-> e.decision]}
    /\ UNCHANGED <<logVars, fresh, roundVars>>

\* `of` appended the op message.
WriteOp(e) ==
    /\ e.queue = OpQueue
    /\ Appended(e.of, OpQueue) /\ EventAt(e.of).queue_offset = e.op_offset
    /\ e.op_offset \in newOps
    /\ newOps' = newOps \ {e.op_offset}
    /\ \E p \in pending :
          /\ p.half = e.half_offset /\ p.message = e.message
          /\ pending' = {r \in pending : r.half # e.half_offset}
    /\ UNCHANGED <<wrote, flushed, cuts, halves, listed, ops, asides, fresh, open, old, roundVars>>

------------------------------------------------------------------------------
(* The rounds *)

Clamped(n, count) == IF count = Unknown \/ n <= count THEN n ELSE count

RoundStart(e) ==
    /\ ~round.on
    /\ IF loose THEN e.half_offset >= 0 /\ e.op_offset >= 0 /\ Clamped(e.half_offset, halves) = e.half_offset
                     /\ Clamped(e.op_offset, ops) = e.op_offset
                     /\ (Base = 0 => e.half_offset <= saved.half /\ e.op_offset <= saved.op)
       ELSE e.half_offset = Clamped(progress.half, halves) /\ e.op_offset = Clamped(progress.op, ops)
    /\ round' = [Idle EXCEPT !.on = TRUE, !.i = e.half_offset, !.h0 = e.half_offset, !.start = wrote,
                             !.next = e.op_offset, !.prefix = e.op_offset, !.since = taken + 1]
    /\ progress' = [half |-> e.half_offset, op |-> e.op_offset, at |-> progress.at]
    /\ loose' = FALSE
    /\ read' = e.op_offset
    /\ UNCHANGED <<logVars, messageVars, saved, forgot>>

\* Every op message that was pulled has been looked at.
Ready == round.on /\ read = round.next

ReadFor(h) == {r \in round.remove : r.half = h}

\* The round has come to a half message that it would ask about; `of` appended it. Only then it reads on.
AsksFor(of) ==
    IF of = 0 THEN Base > 0
    ELSE /\ Appended(of, HalfQueue) /\ EventAt(of).queue_offset = round.i
         /\ EventAt(of).physical_offset < round.start
         /\ ReadFor(round.i) = {}
         /\ EventAt(of).message \in old \/ EventAt(of).message \notin open

PullOps(e) ==
    /\ Ready
    /\ e.op_offset_from = round.next
    /\ e.op_offset_from <= e.op_offset_to
    /\ e.op_offset_to - e.op_offset_from <= Batch
    /\ ops # Unknown => e.op_offset_to <= ops
    /\ round.pulled => ~round.empty /\ AsksFor(e.of)
    /\ round' = [round EXCEPT !.pulled = TRUE, !.empty = (e.op_offset_to = e.op_offset_from), !.next = e.op_offset_to,
                             !.since = taken + 1]
    /\ UNCHANGED <<logVars, messageVars, progress, saved, loose, forgot, read>>

\* The op messages before this one are done without a gap.
Advanced(prefix, done) ==
    LET more == {o \in done : o >= prefix}
        end  == CHOOSE n \in {prefix} \cup {o + 1 : o \in more} :
                    /\ \A o \in prefix..(n - 1) : o \in more
                    /\ n \notin more
    IN  [prefix |-> end, done |-> {o \in more : o > end}]

\* No event of a broker: the runner says of each op message that was pulled which half message it names. `of` is the
\* WriteOp, `again` appended the op message; a crash may have come before the event of the first.
ReadOp(e) ==
    /\ round.on /\ read = e.op_offset /\ read < round.next
    /\ IF e.of # 0 THEN /\ e.of <= taken /\ EventAt(e.of).action = "WriteOp"
                        /\ EventAt(e.of).op_offset = e.op_offset /\ EventAt(e.of).half_offset = e.half_offset
       ELSE e.half_offset = Unknown
    /\ IF e.again # 0 THEN Appended(e.again, OpQueue) /\ EventAt(e.again).queue_offset = e.op_offset ELSE Base > 0
    /\ read' = read + 1
    /\ LET before == {r \in round.remove : r.half = e.half_offset}
           past   == e.half_offset < round.h0
           added  == IF past THEN {e.op_offset} ELSE {r.op : r \in before}
           now    == Advanced(round.prefix, round.done \cup added)
       IN  round' = [round EXCEPT
              !.remove = IF past THEN @ ELSE (@ \ before) \cup {[half |-> e.half_offset, op |-> e.op_offset]},
              !.prefix = now.prefix, !.done = now.done,
              !.last = IF e.again # 0 THEN EventAt(e.again).physical_offset ELSE @]
    /\ UNCHANGED <<logVars, messageVars, progress, saved, loose, forgot>>

\* Nobody knew how m came out when the round took its last step: `prior` is a decision that has come since, while the round
\* waited for the store. Or it was rolled back before the broker's memory went: the index knows only what was committed.
\* (Here the broker knows less than FinishedSet says: it asks the producer once more, who answers as before.)
Undecided(m, prior) ==
    \/ m \in open
    \/ /\ 0 < prior /\ prior <= taken
       /\ EventAt(prior).action = "EndTransaction" /\ EventAt(prior).message = m
       /\ round.since < prior \/ (prior <= forgot /\ EventAt(prior).decision = Rollback)

\* The round meets half message h, and may not pass it. `of` appended it.
Meets(e) ==
    /\ Ready /\ round.pulled
    /\ e.half_offset = round.i
    /\ IsHalf(e.of, e.half_offset, e.message)
    /\ ReadFor(e.half_offset) = {} /\ (e.of = 0 \/ Undecided(e.message, e.prior))

Passes(h) == [round EXCEPT !.i = h + 1, !.since = taken + 1]

\* No event of a broker: the runner says of each half message that a round passes because it is damaged that it is a Hole.
\* `of` appended it.
Hole(e) ==
    /\ Ready /\ round.pulled
    /\ e.half_offset = round.i
    /\ Appended(e.of, HalfQueue) /\ EventAt(e.of).queue_offset = e.half_offset
    /\ EventAt(e.of).message \in flipped
    /\ round' = Passes(e.half_offset)
    /\ UNCHANGED <<logVars, messageVars, progress, saved, loose, forgot, read>>

\* `of` appended the half message.
HalfRemoved(e) ==
    /\ Ready /\ round.pulled
    /\ e.half_offset = round.i
    /\ LET mine == ReadFor(e.half_offset)
           now  == Advanced(round.prefix, round.done \cup {r.op : r \in mine})
       IN  /\ IF mine = {}
              THEN /\ e.op_offset = -1
                   /\ e.of # 0 => /\ Appended(e.of, HalfQueue) /\ EventAt(e.of).queue_offset = e.half_offset
                                  /\ EventAt(e.of).message \notin open
                   /\ e.of = 0 => Base > 0
              ELSE \E r \in mine : e.op_offset = r.op
           /\ round' = [Passes(e.half_offset) EXCEPT !.remove = @ \ mine, !.prefix = now.prefix, !.done = now.done]
    /\ UNCHANGED <<logVars, messageVars, progress, saved, loose, forgot, read>>

\* How often the producer was asked about half message h: `made` is the event that made this copy, 0 for the first one.
Checks(made, h, m) ==
    IF made = 0 THEN 0
    ELSE IF EventAt(made).new_offset # h \/ EventAt(made).message # m \/ made > taken THEN -1000000
    ELSE EventAt(made).checks

\* Nobody knows how often it was before the trace.
Counted(e, n, more) == IF e.of = 0 THEN n >= more ELSE n = Checks(e.made, e.half_offset, e.message) + more

\* `of` appended the half message, `made` made it, `new` appended the copy that is set aside.
HalfDiscard(e) ==
    /\ Meets(e)
    /\ e.check_times >= CheckMax
    /\ Counted(e, e.check_times, 0)
    /\ [message |-> e.message, at |-> e.new] \in asides
    /\ asides' = asides \ {[message |-> e.message, at |-> e.new]}
    /\ round' = Passes(e.half_offset)
    /\ UNCHANGED <<wrote, flushed, cuts, halves, listed, ops, newOps, messageVars, progress, saved, loose, forgot, read>>

\* A copy is appended. `new` appended it.
Copied(e) ==
    /\ IsHalf(e.new, e.new_offset, e.message)
    /\ [half |-> e.new_offset, message |-> e.message] \in fresh
    /\ fresh' = fresh \ {[half |-> e.new_offset, message |-> e.message]}
    /\ e.new_offset > e.half_offset
    /\ e.of # 0 => EventAt(e.of).physical_offset < round.start
    /\ round' = Passes(e.half_offset)

\* `checks` is what the copy carries: an immune message is not asked about.
HalfImmune(e) ==
    /\ Meets(e)
    /\ e.message \notin old
    /\ Counted(e, e.checks, 0)
    /\ e.checks < CheckMax
    /\ Copied(e)
    /\ UNCHANGED <<logVars, open, pending, old, progress, saved, loose, forgot, read>>

\* Asked only when every op message was read that was there when the round began. A decision that comes while the copy is
\* written is too late for it.
HalfRenewAndCheck(e) ==
    /\ Meets(e)
    /\ e.message \in old \/ e.message \notin open
    /\ round.empty \/ round.last >= round.start
    /\ Counted(e, e.check_times, 1)
    /\ e.checks = e.check_times
    /\ e.check_times <= CheckMax
    /\ Copied(e)
    /\ UNCHANGED <<logVars, open, pending, old, progress, saved, loose, forgot, read>>

\* `of` appended the half message that the round has come to, if there is one: it is new, or young, or not dispatched
\* yet, or the round has got somewhere.
RoundFinish(e) ==
    /\ Ready /\ round.pulled
    /\ e.half_offset = round.i /\ e.op_offset = round.prefix
    /\ e.of # 0 => Appended(e.of, HalfQueue) /\ EventAt(e.of).queue_offset = e.half_offset
    /\ IF round.i > round.h0 \/ e.of = 0 \/ (listed # Unknown /\ round.i >= listed) THEN TRUE
       ELSE EventAt(e.of).physical_offset >= round.start \/ EventAt(e.of).message \notin old
    /\ progress' = [half |-> e.half_offset, op |-> e.op_offset, at |-> wrote]
    /\ round' = Idle
    /\ UNCHANGED <<logVars, messageVars, saved, loose, forgot, read>>

RoundAbort(e) ==
    /\ round.on
    /\ e.half_offset = progress.half /\ e.op_offset = progress.op
    /\ round' = Idle /\ read' = 0
    /\ UNCHANGED <<logVars, messageVars, progress, saved, loose, forgot>>

PersistProgress(e) ==
    /\ e.half_offset = progress.half /\ e.op_offset = progress.op
    /\ flushed >= progress.at
    /\ saved' = [half |-> e.half_offset, op |-> e.op_offset]
    /\ UNCHANGED <<logVars, messageVars, progress, loose, forgot, round, read>>

------------------------------------------------------------------------------
(* The world *)

\* `of` appended a half message of it.
ImmunityOver(e) ==
    /\ IF e.of = 0 THEN Base > 0 ELSE Appended(e.of, HalfQueue) /\ EventAt(e.of).message = e.message
    /\ e.message \notin old
    /\ old' = IF e.message \in open \/ e.of = 0 THEN old \cup {e.message} ELSE old
    /\ UNCHANGED <<logVars, fresh, open, pending, roundVars>>

\* What was in memory is gone: the round, decisions without an op, and that a message was rolled back. Of what was
\* appended and not told of nobody knows why.
Forget ==
    /\ open' = open \cup {p.message : p \in {r \in pending : r.decision = Rollback}} \cup {f.message : f \in fresh}
    /\ pending' = {} /\ old' = {} /\ fresh' = {} /\ newOps' = {} /\ asides' = {}
    /\ progress' = [half |-> saved.half, op |-> saved.op, at |-> 0]
    /\ round' = Idle /\ read' = 0
    /\ forgot' = taken + 1 /\ listed' = Unknown
    /\ UNCHANGED <<wrote, flushed, cuts, halves, ops, saved>>

StopStore(e) == e.valid_to = wrote /\ Forget /\ UNCHANGED loose
ProcessCrash(e) == Forget /\ loose' = TRUE
PowerLoss(e) == Forget /\ loose' = TRUE

------------------------------------------------------------------------------
Step(e) ==
    CASE e.action = "AppendMessage"     -> AppendMessage(e)
      [] e.action = "DispatchMessage"   -> DispatchMessage(e)
      [] e.action = "SendHalf"          -> SendHalf(e)
      [] e.action = "EndTransaction"    -> EndTransaction(e)
      [] e.action = "WriteOp"           -> WriteOp(e)
      [] e.action = "ReadOp"            -> ReadOp(e)
      [] e.action = "HalfRemoved"       -> HalfRemoved(e)
      [] e.action = "PullOps"           -> PullOps(e)
      [] e.action = "FlushLog"          -> FlushLog(e)
      [] e.action = "RollFile"          -> RollFile(e)
      [] e.action = "RoundStart"        -> RoundStart(e)
      [] e.action = "RoundFinish"       -> RoundFinish(e)
      [] e.action = "RoundAbort"        -> RoundAbort(e)
      [] e.action = "HalfRenewAndCheck" -> HalfRenewAndCheck(e)
      [] e.action = "HalfImmune"        -> HalfImmune(e)
      [] e.action = "HalfDiscard"       -> HalfDiscard(e)
      [] e.action = "ImmunityOver"      -> ImmunityOver(e)
      [] e.action = "PersistProgress"   -> PersistProgress(e)
      [] e.action = "TruncateLog"       -> TruncateLog(e)
      [] e.action = "Lost"              -> Lost(e)
      [] e.action = "Reopened"          -> Reopened(e)
      [] e.action = "Hole"              -> Hole(e)
      [] e.action = "FlipBit"           -> UNCHANGED <<logVars, messageVars, roundVars>>
      [] e.action = "StopStore"         -> StopStore(e)
      [] e.action = "ProcessCrash"      -> ProcessCrash(e)
      [] e.action = "PowerLoss"         -> PowerLoss(e)
      [] OTHER -> FALSE

\* The events of the rounds name the half queue.
OfTheRounds == {"RoundStart", "PullOps", "HalfRemoved", "HalfDiscard", "HalfImmune", "HalfRenewAndCheck", "RoundFinish",
                "RoundAbort", "PersistProgress", "ImmunityOver"}
TraceNext ==
    /\ taken < EventCount
    /\ taken' = taken + 1
    /\ LET e == EventAt(taken + 1)
       IN  /\ (e.action \in OfTheRounds => e.queue = HalfQueue) /\ Step(e)
           /\ flipped' = IF e.action = "FlipBit" THEN flipped \cup {e.message} ELSE flipped
TraceSpec == Init /\ [][TraceNext]_vars

\* How far it has come; TLC prints it now and then.
Tell == IF taken % 1000 = 0 \/ taken = EventCount THEN PrintT(<<"taken", taken>>) ELSE TRUE
==============================================================================
