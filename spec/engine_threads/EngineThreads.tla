--------------------------- MODULE EngineThreads ---------------------------
(***************************************************************************)
(* The threads of the C data plane, and what they share.                   *)
(*                                                                         *)
(*   IO       reads frames, checks sends against its snapshot, stages      *)
(*            records, writes what a turn has staged, acknowledges         *)
(*   flusher  performs one flush at a time; knows nothing of the store     *)
(*   control  the Python side: owns the tables, serves what is handed over *)
(*                                                                         *)
(*        asks ->            handed ->                                     *)
(*   IO ============ flusher   IO ============ control                     *)
(*        <- outcomes                <- down                               *)
(*                                                                         *)
(* They share four rings, each with one writer and one reader, and nothing *)
(* else: no word of the store is seen by two threads. Each ring has a bell *)
(* (an eventfd) that is rung behind a push; the flusher's is modelled, the *)
(* others work in the same way.                                            *)
(*                                                                         *)
(* Modelled: sync flush; connections that each send the same frames in     *)
(* order; changes of the control plane's tables (a permission taken away); *)
(* a flush that fails. A power loss is not an action: that every           *)
(* acknowledged record is durable is asked of every state.                 *)
(* Left out: full rings (a push waits, and IO stops reading), connections  *)
(* that close (their numbers are never used again), pulls (they change     *)
(* nothing), and the memory model of the processor, which ThreadSanitizer  *)
(* looks after.                                                            *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Conn,           \* connections
          Program,        \* the frames that each of them sends: "send" or "change"
          MayFail,        \* whether a flush may fail
          \* Each TRUE in the engine; FALSE is a mistake that it could make.
          WriteBeforeAsk, \* a flush is asked for what is in the file, not for what is staged
          OneQueueDown,   \* snapshots and answers come down in one queue
          HoldFrames,     \* frames behind one that was handed over are handed over too
          BellFirst       \* who wakes up silences the bell before looking, not after

VARIABLES next,     \* next[c]: the number of the frame that IO serves next
          staged,   \* records that are planned, and have their place in the log
          wrote,    \* records that are in the file
          durable,  \* records that a power loss cannot take back
          asks,     \* ring: up to where the flusher is asked to flush
          outcomes, \* ring: up to where it has, and whether that worked
          bell,     \* the flusher's bell rings
          flusher,  \* "asleep", "looking", or "leaving" (it found nothing, and will sleep)
          flushed,  \* what IO knows to be durable
          acked,    \* records whose producers were told that they are safe
          failed,   \* IO has heard of a flush that failed
          handed,   \* ring: frames for the control plane
          down,     \* ring: what it sends back
          answers,  \* a second queue for answers, only with the mistake ~OneQueueDown
          version,  \* how often the control plane has changed its tables
          snapshot, \* the version that IO checks against
          told,     \* the newest version of whose change somebody has been told
          stale,    \* a send was checked against tables older than what somebody had been told
          begun,    \* begun[c]: the last frame handed over that the control plane has begun
          given,    \* given[c]: the last frame that was handed over
          order     \* order[c]: the frames of c that have taken effect, in that order

flushVars == <<wrote, durable, asks, outcomes, bell, flusher, flushed, acked, failed>>
tableVars == <<handed, down, answers, version, snapshot, told, begun, given>>
vars      == <<next, staged, stale, order, flushVars, tableVars>>

Min(a, b) == IF a < b THEN a ELSE b
Frame     == 1..Len(Program)

Init == /\ next = [c \in Conn |-> 1] /\ order = [c \in Conn |-> <<>>]
        /\ begun = [c \in Conn |-> 0] /\ given = [c \in Conn |-> 0]
        /\ staged = 0 /\ wrote = 0 /\ durable = 0 /\ flushed = 0 /\ acked = 0
        /\ asks = <<>> /\ outcomes = <<>> /\ handed = <<>> /\ down = <<>> /\ answers = <<>>
        /\ bell = FALSE /\ flusher = "asleep" /\ failed = FALSE /\ stale = FALSE
        /\ version = 0 /\ snapshot = 0 /\ told = 0

------------------------------------------------------------------------------
\* IO: frames

\* A frame of c goes to the control plane, and until that has begun it, so do those behind it.
Holds(c) == HoldFrames /\ begun[c] < given[c]

\* A send is checked against the snapshot and staged.
ServeFrame(c) ==
    /\ next[c] \in Frame
    /\ Program[next[c]] = "send" /\ ~Holds(c)
    /\ next' = [next EXCEPT ![c] = @ + 1]
    /\ order' = [order EXCEPT ![c] = Append(@, next[c])]
    /\ staged' = staged + 1
    /\ stale' = (stale \/ snapshot < told)
    /\ UNCHANGED <<flushVars, tableVars>>

\* What is none of IO's, and what comes behind such a frame.
HandOver(c) ==
    /\ next[c] \in Frame
    /\ Program[next[c]] # "send" \/ Holds(c)
    /\ next' = [next EXCEPT ![c] = @ + 1]
    /\ given' = [given EXCEPT ![c] = next[c]]
    /\ handed' = Append(handed, [conn |-> c, frame |-> next[c]])
    /\ UNCHANGED <<staged, stale, order, flushVars, down, answers, version, snapshot, told, begun>>

------------------------------------------------------------------------------
\* IO and flusher

\* At the end of a turn one write brings everything staged into the file.
WriteTurn ==
    /\ wrote' = staged
    /\ UNCHANGED <<next, staged, stale, order, durable, asks, outcomes, bell, flusher, flushed, acked, failed, tableVars>>

\* One flush at a time. The push comes first, and then the bell.
AskFlush ==
    LET to == IF WriteBeforeAsk THEN wrote ELSE staged
    IN  /\ ~failed /\ asks = <<>> /\ outcomes = <<>> /\ flushed < to
        /\ asks' = Append(asks, to)
        /\ bell' = TRUE
        /\ UNCHANGED <<next, staged, stale, order, wrote, durable, outcomes, flusher, flushed, acked, failed, tableVars>>

WakeFlusher ==
    /\ flusher = "asleep" /\ bell
    /\ flusher' = "looking"
    /\ bell' = ~BellFirst
    /\ UNCHANGED <<next, staged, stale, order, wrote, durable, asks, outcomes, flushed, acked, failed, tableVars>>

\* What was in the file when the flush began is durable when it has ended.
FlushFile ==
    /\ flusher = "looking" /\ asks # <<>>
    /\ durable' = Min(Head(asks), wrote)
    /\ outcomes' = Append(outcomes, [to |-> Head(asks), worked |-> TRUE])
    /\ asks' = Tail(asks)
    /\ UNCHANGED <<next, staged, stale, order, wrote, bell, flusher, flushed, acked, failed, tableVars>>

FailFlush ==
    /\ MayFail /\ flusher = "looking" /\ asks # <<>>
    /\ outcomes' = Append(outcomes, [to |-> Head(asks), worked |-> FALSE])
    /\ asks' = Tail(asks)
    /\ UNCHANGED <<next, staged, stale, order, wrote, durable, bell, flusher, flushed, acked, failed, tableVars>>

FindNothing ==
    /\ flusher = "looking" /\ asks = <<>>
    /\ flusher' = "leaving"
    /\ UNCHANGED <<next, staged, stale, order, wrote, durable, asks, outcomes, bell, flushed, acked, failed, tableVars>>

SleepFlusher ==
    /\ flusher = "leaving"
    /\ flusher' = "asleep"
    /\ bell' = (bell /\ BellFirst)
    /\ UNCHANGED <<next, staged, stale, order, wrote, durable, asks, outcomes, flushed, acked, failed, tableVars>>

HearFlush ==
    /\ outcomes # <<>>
    /\ flushed' = IF Head(outcomes).worked THEN Head(outcomes).to ELSE flushed
    /\ failed' = (failed \/ ~Head(outcomes).worked)
    /\ outcomes' = Tail(outcomes)
    /\ UNCHANGED <<next, staged, stale, order, wrote, durable, asks, bell, flusher, acked, tableVars>>

\* The producers of everything that is durable are told, in the order of the log.
AckPuts ==
    /\ acked' = flushed
    /\ UNCHANGED <<next, staged, stale, order, wrote, durable, asks, outcomes, bell, flusher, flushed, failed, tableVars>>

------------------------------------------------------------------------------
\* IO and control plane

Item(what, n, one) == [what |-> what, number |-> n, frame |-> one.frame, conn |-> one.conn]

\* The control plane serves a frame. A change is installed below before its answer goes there; a send that was held back
\* goes back down, behind everything that came before it. Last, IO learns that the frame has begun.
BeginFrame ==
    /\ handed # <<>>
    /\ LET one    == Head(handed)
           change == Program[one.frame] = "change"
           effect == IF change THEN Item("install", version + 1, one) ELSE Item("again", 0, one)
           answer == IF change THEN <<Item("answer", version + 1, one)>> ELSE <<>>
           begin  == Item("begun", 0, one)
       IN  /\ version' = IF change THEN version + 1 ELSE version
           /\ IF OneQueueDown
              THEN /\ down' = (down \o <<effect>> \o answer) \o <<begin>>
                   /\ answers' = answers
              ELSE /\ down' = down \o <<effect, begin>>
                   /\ answers' = answers \o answer
    /\ handed' = Tail(handed)
    /\ UNCHANGED <<next, staged, stale, order, flushVars, snapshot, told, begun, given>>

\* IO takes the next item that came down. A change takes effect when it is installed here, not when it was decided: the
\* control plane may decide the next one while a send of before is still on its way down.
HearDown ==
    /\ down # <<>>
    /\ down' = Tail(down)
    /\ LET one   == Head(down)
           takes == one.what \in {"install", "again"}
       IN  /\ snapshot' = IF one.what = "install" THEN one.number ELSE snapshot
           /\ told' = IF one.what = "answer" THEN one.number ELSE told
           /\ begun' = IF one.what = "begun" THEN [begun EXCEPT ![one.conn] = one.frame] ELSE begun
           /\ staged' = IF one.what = "again" THEN staged + 1 ELSE staged
           /\ order' = IF takes THEN [order EXCEPT ![one.conn] = Append(@, one.frame)] ELSE order
    /\ UNCHANGED <<next, stale, flushVars, handed, answers, version, given>>

\* Only with the mistake: an answer leaves whatever has been installed.
HearAnswer ==
    /\ answers # <<>>
    /\ told' = Head(answers).number
    /\ answers' = Tail(answers)
    /\ UNCHANGED <<next, staged, stale, order, flushVars, handed, down, version, snapshot, begun, given>>

------------------------------------------------------------------------------
Next == \/ \E c \in Conn : ServeFrame(c) \/ HandOver(c)
        \/ WriteTurn \/ AskFlush \/ WakeFlusher \/ FlushFile \/ FailFlush \/ FindNothing \/ SleepFlusher
        \/ HearFlush \/ AckPuts
        \/ BeginFrame \/ HearDown \/ HearAnswer

Spec == Init /\ [][Next]_vars

\* Every thread goes on as long as it can. A flush that can fail need not.
FairSpec == /\ Spec
            /\ \A c \in Conn : WF_vars(ServeFrame(c) \/ HandOver(c))
            /\ WF_vars(WriteTurn) /\ WF_vars(AskFlush) /\ WF_vars(HearFlush) /\ WF_vars(AckPuts)
            /\ WF_vars(WakeFlusher) /\ WF_vars(FlushFile) /\ WF_vars(FindNothing) /\ WF_vars(SleepFlusher)
            /\ WF_vars(BeginFrame) /\ WF_vars(HearDown)

------------------------------------------------------------------------------
\* Promises

TypeOK ==
    /\ next \in [Conn -> 1..(Len(Program) + 1)]
    /\ flusher \in {"asleep", "looking", "leaving"}
    /\ {staged, wrote, durable, flushed, acked, version, snapshot, told} \subseteq Nat
    /\ {bell, failed, stale} \subseteq BOOLEAN

\* Positions of the log, from what is planned to what was promised.
MarksInOrder == acked <= flushed /\ wrote <= staged /\ durable <= wrote

\* Whoever was told that a record is safe was told the truth.
AckedIsDurable == acked <= durable

\* Nothing is promised on the word of a flush that failed, or of one that has not ended.
FlushedIsDurable == flushed <= durable

\* One flush is under way at most.
OneFlush == Len(asks) + Len(outcomes) <= 1

\* When an answer says that the tables have changed, no later send is checked against the old ones.
RevokedStaysOut == ~stale

\* The frames of a connection take effect in their order.
FramesInOrder == \A c \in Conn : \A i \in 1..(Len(order[c]) - 1) : order[c][i] < order[c][i + 1]

\* Tables come down in their order, and nobody is told of one that is not installed.
SnapshotsInOrder == told <= snapshot /\ snapshot <= version

CountOf(what) == Cardinality({n \in Frame : Program[n] = what}) * Cardinality(Conn)

\* The log has exactly the sends that have taken effect.
TookEffect(what) == UNION {{<<c, order[c][i]>> : i \in {j \in 1..Len(order[c]) : Program[order[c][j]] = what}} : c \in Conn}
LogHasTheSends   == staged = Cardinality(TookEffect("send"))

\* A flush fails only where that may happen.
FailsOnlyIfItMay == failed => MayFail

\* Whoever has heard of a flush that failed asks for no other: nobody knows what is on the medium.
NoFlushAfterFailure == [][failed => Len(asks') <= Len(asks)]_vars

\* Only a flusher that is awake has outcomes to tell.
OutcomesHaveCauses == [][Len(outcomes') > Len(outcomes) => flusher = "looking" /\ asks # <<>>]_vars

\* Every send is acknowledged, unless a flush has failed.
EverySendAnswered == <>(acked = CountOf("send") \/ failed)

\* Every frame takes effect, whoever sent a change is told, and no connection goes on being held.
EveryFrameServed == <>(\A c \in Conn : Len(order[c]) = Len(Program))
EveryChangeTold  == <>[](told = CountOf("change"))
HoldsEnd         == <>[](\A c \in Conn : begun[c] = given[c])

\* When there is nothing more to do the flusher sleeps.
FlusherRests == <>[](flusher = "asleep" /\ ~bell)
=============================================================================
