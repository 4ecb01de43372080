--------------------------- MODULE EngineThreads ---------------------------
(***************************************************************************)
(* The threads of the C data plane, and what they share.                   *)
(*                                                                         *)
(*   IO       reads frames, serves sends, writes what a turn has appended, *)
(*            and only then lets its answers go (shell/loop.c)             *)
(*   flusher  performs one flush at a time; knows nothing of the store     *)
(*            (shell/flusher.c)                                            *)
(*   control  the Python side: owns the tables, serves what is handed over *)
(*            (refmq/net/thread_engine.py)                                 *)
(*                                                                         *)
(*         slot                      up ->                                 *)
(*   IO ========== flusher     IO =========== control                      *)
(*         bell                      <- down                               *)
(*                                                                         *)
(* IO and control share the plane and the store under one lock, which is   *)
(* fair (shell/lock.h), and two boxes of letters (shell/mail.h). IO and    *)
(* the flusher share one slot. A box has a bell (an eventfd); the lower    *)
(* one is modelled step by step, the upper one works in the same way.      *)
(*                                                                         *)
(* A frame is "send" (IO serves it), "cold" (a send that the control plane *)
(* has to serve) or "change" (of its tables: a permission taken away).     *)
(* A record is the connection and the number of its frame.                 *)
(*                                                                         *)
(* A crash is not an action: that every record whose producer was told is  *)
(* written, or durable, is asked of every state.                           *)
(* Left out: full boxes, connections that close (their numbers are never   *)
(* used again), pulls (they change nothing), and the memory model of the   *)
(* processor, which ThreadSanitizer looks after.                           *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Conn,           \* connections
          Program,        \* the frames that each of them sends
          Sync,           \* whether producers wait until their records are durable, or only until they are written
          MayFail,        \* whether a flush may fail
          \* Each TRUE in the engine; FALSE is a mistake that it could make.
          WritesFirst,    \* answers leave after what they promise is written
          KeepsTarget,    \* a flush promises what was in the file when it was asked for, not when it has ended
          InstallsFirst,  \* a change is installed before its answer is sent
          HoldsFrames,    \* a send behind a frame that was handed over waits until that has begun
          TakesLock,      \* the control plane takes the lock for what it does to plane and store
          FairLock,       \* who waits for the lock gets it before who comes later
          SilencesFirst,  \* who wakes up silences the bell before looking into the box, not after
          RingsLast       \* the flusher says that a flush has ended before it rings, not after

VARIABLES next,      \* next[c]: the number of the frame of c that IO comes to next
          begins,    \* begins[c]: the frames of c that have begun, in that order
          \* Shared under the lock.
          lock,      \* who holds it, and behind it who waits
          log,       \* the records that have their place
          wrote,     \* how many of them are in the file
          installed, \* the changes that sends are checked against
          \* The IO thread's.
          io,        \* where it is in its turn
          ioPlan,    \* the record that it is appending, and where: between planning and doing it
          bars,      \* bars[c]: frames that were handed over and, as far as IO knows, have not begun
          wants,     \* who wants a flush: "io", "control"
          flushed,   \* how many records IO knows to be durable
          tells,     \* the flush that is under way is one that the control plane waits for
          ready,     \* frames whose answers wait to leave
          gone,      \* frames whose answers have left
          failed,    \* a flush has failed
          stale,     \* a send was checked against tables older than what somebody had been told
          \* Shared with the flusher.
          slot,      \* "rests", "asked", "ended" or "failed"
          target,    \* how many records the flush in the slot makes durable
          durable,   \* how many a power loss cannot take back
          endedBell, \* the flusher's bell rings
          late,      \* with the mistake ~RingsLast: it has rung, and has yet to say why
          \* Shared with the control plane.
          up,        \* box: frames that are handed over, and "durable"
          down,      \* box: letters for IO
          downBell,
          \* The control plane's.
          control,   \* where it is
          does,      \* the frame that it works on
          place,     \* where it appends: between planning and doing it
          open,      \* frames that it has begun
          waiting    \* frames that wait for a flush

shared  == <<lock, log, wrote, installed>>
turn    == <<next, begins, ioPlan, bars, wants, flushed, tells, ready, gone, failed, stale>>
medium  == <<slot, target, durable, endedBell, late>>
boxes   == <<up, down, downBell>>
python  == <<control, does, place, open, waiting>>
vars    == <<shared, io, turn, medium, boxes, python>>

Frame     == 1..Len(Program)
Kind(f)   == Program[f[2]]
None      == <<>>
Range(s)  == {s[i] : i \in 1..Len(s)}
Upto(n)   == {log[i] : i \in 1..n}

Init == /\ next = [c \in Conn |-> 1] /\ begins = [c \in Conn |-> <<>>] /\ bars = [c \in Conn |-> 0]
        /\ lock = <<>> /\ log = <<>> /\ wrote = 0 /\ installed = {}
        /\ io = "waits" /\ ioPlan = None /\ wants = {} /\ flushed = 0 /\ tells = FALSE
        /\ ready = {} /\ gone = {} /\ failed = FALSE /\ stale = FALSE
        /\ slot = "rests" /\ target = 0 /\ durable = 0 /\ endedBell = FALSE /\ late = FALSE
        /\ up = <<>> /\ down = <<>> /\ downBell = FALSE
        /\ control = "rests" /\ does = None /\ place = 0 /\ open = {} /\ waiting = {}

------------------------------------------------------------------------------
\* The lock. With tickets, who comes draws one; without, who comes while it is taken has to come again.

MayDraw == FairLock \/ lock = <<>>
Holds(who) == lock # <<>> /\ Head(lock) = who

------------------------------------------------------------------------------
\* IO: its turn

\* A send behind a frame that was handed over waits. What is not for IO is handed over, whatever is in front of it.
Barred(c)   == HoldsFrames /\ bars[c] > 0
Servable(c) == next[c] \in Frame /\ ~(Program[next[c]] = "send" /\ Barred(c))

StartTurn == /\ io = "waits"
             /\ endedBell' = FALSE
             /\ io' = IF downBell THEN "reads" ELSE "draws"
             /\ downBell' = (downBell /\ ~SilencesFirst)
             /\ UNCHANGED <<shared, turn, slot, target, durable, late, up, down, python>>

\* IO wakes up for a bell or for frames.
WakeIO == (downBell \/ endedBell \/ \E c \in Conn : Servable(c)) /\ StartTurn

\* The clock wakes it up as well. Nothing relies on that.
TickIO == StartTurn

Begun(c)     == Cardinality({i \in 1..Len(down) : down[i].what = "begun" /\ down[i].frame[1] = c})
Answers      == {down[i].frame : i \in {j \in 1..Len(down) : down[j].what = "answer"}}
AskedToFlush == \E i \in 1..Len(down) : down[i].what = "flush"

\* Everything that is in the box.
ReadLetters ==
    /\ io = "reads"
    /\ bars' = [c \in Conn |-> bars[c] - Begun(c)]
    /\ ready' = ready \cup Answers
    /\ wants' = IF AskedToFlush THEN wants \cup {"control"} ELSE wants
    /\ down' = <<>>
    /\ io' = IF SilencesFirst THEN "draws" ELSE "silences"
    /\ UNCHANGED <<shared, next, begins, ioPlan, flushed, tells, gone, failed, stale, medium, up, downBell, python>>

\* Only with the mistake ~SilencesFirst.
SilenceBell ==
    /\ io = "silences"
    /\ downBell' = FALSE
    /\ io' = "draws"
    /\ UNCHANGED <<shared, turn, medium, up, down, python>>

DrawTicket ==
    /\ io = "draws" /\ MayDraw
    /\ lock' = Append(lock, "io")
    /\ io' = "serves"
    /\ UNCHANGED <<log, wrote, installed, turn, medium, boxes, python>>

\* A send is checked, and finds its place.
PlanSend(c) ==
    /\ io = "serves" /\ Holds("io") /\ ioPlan = None
    /\ Servable(c) /\ Program[next[c]] = "send"
    /\ ioPlan' = <<c, Len(log)>>
    /\ stale' = (stale \/ ~({f \in gone : Kind(f) = "change"} \subseteq installed))
    /\ UNCHANGED <<shared, io, next, begins, bars, wants, flushed, tells, ready, gone, failed, medium, boxes, python>>

\* It is put there. Its answer waits for the end of the turn, or for a flush.
AppendSend ==
    /\ io = "serves" /\ ioPlan # None
    /\ LET c    == ioPlan[1]
           send == <<c, next[c]>>
       IN  /\ log' = Append(SubSeq(log, 1, ioPlan[2]), send)
           /\ next' = [next EXCEPT ![c] = @ + 1]
           /\ begins' = [begins EXCEPT ![c] = Append(@, send[2])]
           /\ wants' = IF Sync THEN wants \cup {"io"} ELSE wants
           /\ ready' = IF Sync THEN ready ELSE ready \cup {send}
    /\ ioPlan' = None
    /\ UNCHANGED <<lock, wrote, installed, io, bars, flushed, tells, gone, failed, stale, medium, boxes, python>>

\* What is not for IO goes up, in the order in which it came.
HandOver(c) ==
    /\ io = "serves" /\ Holds("io") /\ ioPlan = None
    /\ Servable(c) /\ Program[next[c]] # "send"
    /\ up' = Append(up, [what |-> "frame", frame |-> <<c, next[c]>>, to |-> 0])
    /\ bars' = [bars EXCEPT ![c] = @ + 1]
    /\ next' = [next EXCEPT ![c] = @ + 1]
    /\ UNCHANGED <<shared, io, begins, ioPlan, wants, flushed, tells, ready, gone, failed, stale, medium, down, downBell, python>>

\* One write for everything that the turn has appended.
WriteTurn ==
    /\ io = "serves" /\ Holds("io") /\ ioPlan = None
    /\ wrote' = IF WritesFirst THEN Len(log) ELSE wrote
    /\ io' = "flushes"
    /\ UNCHANGED <<lock, log, installed, turn, medium, boxes, python>>

\* IO hears of a flush that has ended, and asks for the next one. Who waited for records that are durable now is answered,
\* in the order of the log.
StepFlush ==
    /\ io = "flushes"
    /\ LET worked == slot = "ended"
           breaks == slot = "failed"
           asks   == (slot \in {"rests", "ended"}) /\ wants # {} /\ ~failed
           now    == IF worked THEN (IF KeepsTarget THEN target ELSE wrote) ELSE flushed
           hot    == {f \in Upto(now) : Kind(f) = "send"}
       IN  /\ flushed' = now
           /\ failed' = (failed \/ breaks)
           /\ ready' = IF Sync THEN ready \cup (hot \ gone) ELSE ready
           /\ up' = IF worked /\ tells THEN Append(up, [what |-> "durable", frame |-> None, to |-> now]) ELSE up
           /\ tells' = IF asks THEN "control" \in wants ELSE tells /\ slot = "asked"
           /\ wants' = IF asks THEN {} ELSE wants
           /\ slot' = IF asks THEN "asked" ELSE IF worked \/ breaks THEN "rests" ELSE slot
           /\ target' = IF asks THEN wrote ELSE target
    /\ io' = "releases"
    /\ UNCHANGED <<shared, next, begins, ioPlan, bars, gone, stale, durable, endedBell, late, down, downBell, python>>

ReleaseLock ==
    /\ io = "releases"
    /\ lock' = Tail(lock)
    /\ io' = "sends"
    /\ UNCHANGED <<log, wrote, installed, turn, medium, boxes, python>>

SendAnswers ==
    /\ io = "sends"
    /\ gone' = gone \cup ready
    /\ ready' = {}
    /\ io' = "waits"
    /\ UNCHANGED <<shared, next, begins, ioPlan, bars, wants, flushed, tells, failed, stale, medium, boxes, python>>

------------------------------------------------------------------------------
\* Flusher. A condition variable makes "there is something in the slot" and "wake up" one step.

\* What was in the file when the flush began is durable when it has ended.
FlushFile ==
    /\ slot = "asked" /\ ~late
    /\ durable' = wrote
    /\ endedBell' = TRUE
    /\ IF RingsLast THEN slot' = "ended" /\ late' = FALSE ELSE slot' = slot /\ late' = TRUE
    /\ UNCHANGED <<shared, io, turn, target, boxes, python>>

\* Only with the mistake ~RingsLast.
SayEnded ==
    /\ late
    /\ slot' = "ended" /\ late' = FALSE
    /\ UNCHANGED <<shared, io, turn, target, durable, endedBell, boxes, python>>

FailFlush ==
    /\ MayFail /\ slot = "asked" /\ ~late
    /\ slot' = "failed"
    /\ endedBell' = TRUE
    /\ UNCHANGED <<shared, io, turn, target, durable, late, boxes, python>>

------------------------------------------------------------------------------
\* Control plane

Letter(what, f) == [what |-> what, frame |-> f]

\* Letters go into the box; the bell rings behind them where the box was empty.
Post(letters) == /\ down' = down \o letters
                 /\ control' = IF down = <<>> /\ letters # <<>> THEN "rings" ELSE "rests"

Ring == /\ control = "rings"
        /\ downBell' = TRUE
        /\ control' = "rests"
        /\ UNCHANGED <<shared, io, turn, medium, up, down, does, place, open, waiting>>

\* A handler begins. It may take its time (a table is saved first), and frames behind it may pass from now on.
BeginFrame ==
    /\ control = "rests" /\ up # <<>> /\ Head(up).what = "frame"
    /\ LET f == Head(up).frame
       IN  /\ begins' = [begins EXCEPT ![f[1]] = Append(@, f[2])]
           /\ open' = open \cup {f}
           /\ IF InstallsFirst \/ Kind(f) # "change"
              THEN Post(<<Letter("begun", f)>>)
              ELSE Post(<<Letter("answer", f), Letter("begun", f)>>)
    /\ up' = Tail(up)
    /\ UNCHANGED <<shared, io, next, ioPlan, bars, wants, flushed, tells, ready, gone, failed, stale, medium, downBell, does, place, waiting>>

\* Some handler comes to its effect, and wants the lock for it.
DrawOwnTicket ==
    /\ control = "rests"
    /\ \E f \in open : does' = f /\ open' = open \ {f}
    /\ IF TakesLock THEN MayDraw /\ lock' = Append(lock, "control") ELSE lock' = lock
    /\ control' = "acts"
    /\ UNCHANGED <<log, wrote, installed, io, turn, medium, boxes, place, waiting>>

Acts == control = "acts" /\ (TakesLock => Holds("control"))

Unlocked == IF TakesLock THEN Tail(lock) ELSE lock

\* The new tables are installed, and then the answer goes down.
InstallChange ==
    /\ Acts /\ Kind(does) = "change"
    /\ installed' = installed \cup {does}
    /\ lock' = Unlocked
    /\ IF InstallsFirst THEN Post(<<Letter("answer", does)>>) ELSE control' = "rests" /\ down' = down
    /\ does' = None
    /\ UNCHANGED <<log, wrote, io, turn, medium, up, downBell, place, open, waiting>>

PlanOwnSend ==
    /\ Acts /\ Kind(does) = "cold"
    /\ place' = Len(log)
    /\ control' = "appends"
    /\ UNCHANGED <<shared, io, turn, medium, boxes, does, open, waiting>>

\* A send of the control plane is written before its lock is released, with everything in front of it.
AppendOwnSend ==
    /\ control = "appends"
    /\ log' = Append(SubSeq(log, 1, place), does)
    /\ wrote' = Len(log')
    /\ lock' = Unlocked
    /\ Post(<<IF Sync THEN Letter("flush", does) ELSE Letter("answer", does)>>)
    /\ waiting' = IF Sync THEN waiting \cup {<<does, Len(log')>>} ELSE waiting
    /\ does' = None
    /\ UNCHANGED <<installed, io, turn, medium, up, downBell, place, open>>

\* The sends that wait for this much are answered one by one, in the order of the log.
HearDurable ==
    /\ control = "rests" /\ up # <<>> /\ Head(up).what = "durable"
    /\ LET served == {w \in waiting : w[2] <= Head(up).to}
       IN  IF served = {}
           THEN up' = Tail(up) /\ UNCHANGED <<waiting, control, down>>
           ELSE \E first \in served : /\ \A w \in served : first[2] <= w[2]
                                     /\ waiting' = waiting \ {first}
                                     /\ Post(<<Letter("answer", first[1])>>)
                                     /\ up' = up
    /\ UNCHANGED <<shared, io, turn, medium, downBell, does, place, open>>

------------------------------------------------------------------------------
Next == \/ WakeIO \/ TickIO \/ ReadLetters \/ SilenceBell \/ DrawTicket
        \/ \E c \in Conn : PlanSend(c) \/ HandOver(c)
        \/ AppendSend \/ WriteTurn \/ StepFlush \/ ReleaseLock \/ SendAnswers
        \/ FlushFile \/ SayEnded \/ FailFlush
        \/ Ring \/ BeginFrame \/ DrawOwnTicket \/ InstallChange \/ PlanOwnSend \/ AppendOwnSend \/ HearDurable

Spec == Init /\ [][Next]_vars

\* Every thread goes on as long as it can, and what has come is served in the end. A flush that can fail need not.
FairSpec == /\ Spec
            /\ WF_vars(WakeIO) /\ WF_vars(ReadLetters) /\ WF_vars(SilenceBell) /\ SF_vars(DrawTicket)
            /\ \A c \in Conn : SF_vars(PlanSend(c) \/ HandOver(c))
            /\ WF_vars(AppendSend) /\ WF_vars(WriteTurn) /\ WF_vars(StepFlush)
            /\ WF_vars(ReleaseLock) /\ WF_vars(SendAnswers)
            /\ WF_vars(FlushFile) /\ WF_vars(SayEnded)
            /\ WF_vars(Ring) /\ WF_vars(BeginFrame) /\ WF_vars(DrawOwnTicket) /\ WF_vars(InstallChange)
            /\ WF_vars(PlanOwnSend) /\ WF_vars(AppendOwnSend) /\ WF_vars(HearDurable)

------------------------------------------------------------------------------
\* Promises

TypeOK ==
    /\ next \in [Conn -> 1..(Len(Program) + 1)]
    /\ io \in {"waits", "reads", "silences", "draws", "serves", "flushes", "releases", "sends"}
    /\ control \in {"rests", "rings", "acts", "appends"}
    /\ slot \in {"rests", "asked", "ended", "failed"}
    /\ lock \in {<<>>, <<"io">>, <<"control">>, <<"io", "control">>, <<"control", "io">>}
    /\ {wrote, durable, flushed, target} \subseteq Nat
    /\ \A c \in Conn : bars[c] \in Nat
    /\ wants \subseteq {"io", "control"}

\* How far the log is planned, written and durable, and what IO knows of that.
MarksInOrder == flushed <= durable /\ durable <= wrote /\ wrote <= Len(log)

Sends(frames) == {f \in frames : Kind(f) # "change"}

\* Whoever was told that a record is stored was told the truth: a process that dies does not take it.
AckedIsWritten == Sends(gone) \subseteq Upto(wrote)

\* And where producers wait for the medium, neither does a power loss.
AckedIsDurable == Sync => Sends(gone) \subseteq Upto(durable)

\* When an answer has left that says that the tables have changed, no later send is checked against the old ones.
RevokedStaysOut == ~stale

\* The frames of a connection begin in their order.
FramesInOrder == \A c \in Conn : \A i \in 1..(Len(begins[c]) - 1) : begins[c][i] < begins[c][i + 1]

\* Each record has a place of its own, and keeps it.
PlacesAreKept == [][\A i \in 1..Len(log) : i <= Len(log') /\ log'[i] = log[i]]_vars
OnePlaceEach  == Cardinality(Upto(Len(log))) = Len(log)

\* Nobody is answered whose frame has not begun, and a change is in force before anybody is told.
AnswersHaveCauses == \A f \in ready \cup gone : f[2] \in Range(begins[f[1]])

\* IO and control plane are never inside at the same time: the one between planning and appending holds the lock.
Alone == ~(ioPlan # None /\ control = "appends")

\* What IO writes, flushes and plans, it does with the lock.
OwnerHolds == io \in {"flushes", "releases"} => Holds("io")

\* A flush fails only where that may happen, and afterwards there is no other: nobody knows what is on the medium.
FailsOnlyIfItMay    == failed => MayFail
NoFlushAfterFailure == [][failed => ~(slot = "rests" /\ slot' = "asked")]_vars

\* What is durable was in the file, and becomes so by a flush alone.
DurableHasCause == [][durable' # durable => slot = "asked"]_vars

\* The bell of the box rings, or is about to, while letters lie in it and nobody reads them.
NoLetterInSilence == down # <<>> => downBell \/ control = "rings" \/ io = "reads"

\* A frame brings one record, one letter up and one for its flush, and at most three down.
NothingGrows == LET frames == Cardinality(Conn) * Len(Program)
                IN  Len(log) <= frames /\ Len(up) <= 2 * frames /\ Len(down) <= 3 * frames /\ Len(lock) <= 2

All(kinds) == {<<c, n>> : c \in Conn, n \in {m \in Frame : Program[m] \in kinds}}

\* Every send is acknowledged, unless a flush has failed; who sent a change is told; every frame begins; no bar stays.
EverySendAnswered == <>(All({"send", "cold"}) \subseteq gone \/ failed)
EveryChangeTold   == <>(All({"change"}) \subseteq gone)
EveryFrameBegins  == <>(\A c \in Conn : Len(begins[c]) = Len(Program))
BarsEnd           == <>[](\A c \in Conn : bars[c] = 0)

\* Who wants the lock gets it, however busy the other is.
ControlGetsLock == (control = "acts") ~> (control # "acts")
EffectsHappen   == <>[](open = {} /\ control = "rests")

\* When there is nothing more to do the flusher rests.
FlusherRests == <>[](slot = "rests")
=============================================================================
