------------------------ MODULE TraceStoreRecoveryLong ------------------------
(***************************************************************************)
(* Is a long recorded trace of a store a behaviour of StoreRecovery? The   *)
(* steps are those of TraceStoreRecovery and of the same names, with a     *)
(* state that does not grow: where StoreRecovery has a log and queues as   *)
(* functions, here are marks, how far each thing has come. That is enough, *)
(* because a log is written, flushed and dispatched in its order. What a   *)
(* record is, is looked up in the trace itself: an event that speaks of a  *)
(* record names the event that wrote it (`of`), and every field of the one *)
(* is compared with the other. A hint that is wrong can only refuse a      *)
(* trace, never accept one.                                                *)
(*                                                                         *)
(* A step costs the same at the end of a trace as at its beginning, and    *)
(* each event has one successor at most: TLC follows a line.               *)
(*                                                                         *)
(* Positions are bytes, those of the trace. What TraceStoreRecovery leaves *)
(* open and the store decides is checked as the store decides it: units    *)
(* and entries are built again from where the checkpoint says, and a start *)
(* and a stop end with a checkpoint that covers everything.                *)
(*                                                                         *)
(* A trace may begin with a store that holds something: `Base` is where    *)
(* that ends, and of records before it only the place is checked.          *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets, TLC, TraceEvents

CONSTANTS
    SyncFlush,  \* as in StoreRecovery
    Queues,     \* how many queues the trace has: they are 0..(Queues - 1)
    Base,       \* where the log ended before the trace began
    First,      \* where it began then
    From,       \* where the first scan began: the start of a file
    Begun       \* from where on that recovery built units and entries again: what the checkpoint said then

VARIABLES
    taken,      \* how many events have been taken
    mode,       \* "down", "started", "scanned", "cut" or "serving"
    abort,      \* whether the abort file exists: No, Yes or Maybe
    shaken,     \* the power has failed since the last checkpoint: what is not durable may be gone
    refused,    \* the disk has refused a flush since the last recovery: nobody knows what became of those pages
    flipped,    \* messages of which a bit has flipped, and nobody wrote
    first,      \* where the log begins
    wrote,      \* where it ends
    flushed,    \* what is durable of it
    survives,   \* what is left of it, at least, after the last crash
    stamp,      \* the store time of what is durable: [ms, to, at], and the event that said so
    files,      \* where its files begin
    rolls,      \* <<end of the records of a file, start of the next file>>
    cuts,       \* where recovery has cut it: [at, to], at which event
    next,       \* next[q]: the number of the next message of q; Unknown when the trace has not said
    last,       \* last[q]: where its last record is; None without one
    ends,       \* ends[q]: how many units q has
    kept,       \* kept[q]: how many of them are durable
    lag,        \* lag[q]: the record of the first unit that is not; None if all are
    dispatched, \* records before this position have been dispatched
    indexed,    \* the index is durable for records before this position
    ckpt,       \* the checkpoint: [to, log_ms, queue_ms, index_ms]
    promised,   \* every record before this position that was acknowledged is promised to survive
    valid,      \* where the scan ended
    trusted     \* whether recovery goes by the checkpoint

logVars   == <<first, wrote, flushed, survives, stamp, files, rolls, cuts>>
queueVars == <<next, last, ends, kept, lag>>
builtVars == <<dispatched, indexed, ckpt>>
startVars == <<abort, shaken, valid, trusted>>

No == 0
Yes == 1
Maybe == 2
Unknown == -1
None    == -1
Queue   == 0..(Queues - 1)
Word    == 2147483647

Least(a, b)    == IF a <= b THEN a ELSE b
Greatest(a, b) == IF a >= b THEN a ELSE b
End(r) == r.physical_offset + r.size_bytes

Init ==
    /\ taken = 0
    /\ mode = "down" /\ abort = (IF Base > 0 THEN Maybe ELSE No) /\ shaken = (Base > 0)
    /\ first = First /\ wrote = Base /\ flushed = Base /\ survives = Base
    /\ stamp = [ms |-> 0, to |-> 0, at |-> 0]
    /\ files = {First, From} /\ rolls = {} /\ cuts = <<>>
    /\ next = [q \in Queue |-> IF Base = 0 THEN 0 ELSE Unknown]
    /\ last = [q \in Queue |-> None]
    /\ ends = next /\ kept = ends
    /\ lag = [q \in Queue |-> None]
    /\ dispatched = Base /\ indexed = Base
    /\ ckpt = [to |-> Begun, log_ms |-> 0, queue_ms |-> 0, index_ms |-> 0]
    /\ promised = 0
    /\ valid = 0 /\ trusted = FALSE
    /\ refused = FALSE /\ flipped = {}

------------------------------------------------------------------------------
(* Records *)

InLog(i) == \A c \in DOMAIN cuts : cuts[c].at > i => EventAt(i).physical_offset < cuts[c].to

\* The event i wrote record number o of queue q, and the log still has it.
Wrote(i, q, o) ==
    /\ 0 < i /\ i <= taken
    /\ EventAt(i).action = "AppendMessage"
    /\ EventAt(i).queue = q /\ EventAt(i).queue_offset = o
    /\ InLog(i)

\* The event e names a record that is in the log, as it was written. (Before Base nobody knows.)
Names(e) ==
    IF e.of = 0 THEN e.physical_offset >= first /\ e.physical_offset < Base
    ELSE /\ Wrote(e.of, e.queue, e.queue_offset)
         /\ EventAt(e.of).physical_offset = e.physical_offset
Same(e) == e.of # 0 => EventAt(e.of).message = e.message \/ EventAt(e.of).message \in flipped
Whole(e) == IF e.of # 0 THEN EventAt(e.of).size_bytes = e.size_bytes ELSE End(e) <= Base

\* A position at which records end, or a file begins. `of` is what wrote there last.
Boundary(position, of) ==
    \/ position \in {Base, first, wrote} \/ position \in files
    \/ /\ 0 < of /\ of <= taken
       /\ \/ EventAt(of).action = "AppendMessage" /\ InLog(of) /\ End(EventAt(of)) = position
          \/ EventAt(of).action = "RollFile" /\ EventAt(of).physical_offset = position

------------------------------------------------------------------------------
(* The running store *)

AppendMessage(e) ==
    /\ mode = "serving"
    /\ e.physical_offset = wrote
    /\ next[e.queue] \in {e.queue_offset, Unknown}
    /\ e.queue_offset >= 0 /\ e.size_bytes > 0 /\ e.message > 0
    /\ wrote' = End(e)
    /\ next' = [next EXCEPT ![e.queue] = e.queue_offset + 1]
    /\ last' = [last EXCEPT ![e.queue] = e.physical_offset]
    /\ UNCHANGED <<mode, first, flushed, survives, stamp, files, rolls, cuts, ends, kept, lag, builtVars, promised, startVars>>

\* All files have one size: that between the first two that are known, as far as any are.
FileBytes == LET S == {f \in files : f # first}
             IN  IF S = {} THEN 0 ELSE (CHOOSE f \in S : \A g \in S : f <= g) - first
RollFile(e) ==
    /\ mode = "serving"
    /\ e.physical_offset = wrote /\ e.next_file_offset >= wrote
    /\ IF FileBytes = 0 THEN e.next_file_offset > first
       ELSE e.next_file_offset % FileBytes = 0 /\ e.next_file_offset - wrote < FileBytes
    /\ wrote' = e.next_file_offset
    /\ files' = files \cup {e.next_file_offset}
    /\ rolls' = IF e.next_file_offset = wrote THEN rolls ELSE rolls \cup {<<wrote, e.next_file_offset>>}
    /\ UNCHANGED <<mode, first, flushed, survives, stamp, cuts, queueVars, builtVars, promised, startVars>>

FlushLog(e) ==
    /\ mode = "serving"
    /\ flushed <= e.flushed_to /\ e.flushed_to <= wrote     \* two flushes may have begun together
    /\ Boundary(e.flushed_to, e.of)
    /\ e.log_ms >= stamp.ms
    /\ flushed' = e.flushed_to
    /\ stamp' = [ms |-> e.log_ms, to |-> e.flushed_to, at |-> taken + 1]
    /\ UNCHANGED <<mode, first, wrote, survives, files, rolls, cuts, queueVars, builtVars, promised, startVars>>

\* Status 1 says that the disk was too slow, and nothing is promised; there is no other one without slaves.
AckPut(e) ==
    /\ mode = "serving"
    /\ e.of # 0 /\ Names(e) /\ Same(e)
    /\ EventAt(e.of).ack = taken + 1      \* once
    /\ \/ e.status = 0 /\ (SyncFlush => End(EventAt(e.of)) <= flushed)
       \/ e.status = 1 /\ SyncFlush /\ End(EventAt(e.of)) > flushed
    /\ promised' = IF e.status = 0 THEN Greatest(promised, End(EventAt(e.of))) ELSE promised
    /\ UNCHANGED <<mode, logVars, queueVars, builtVars, startVars>>

\* Where the next record to dispatch is: after the last one, or where the next file begins.
NextRecord == LET ended == {r \in rolls : r[1] = dispatched}
              IN  IF ended = {} THEN dispatched ELSE (CHOOSE r \in ended : TRUE)[2]

\* Units are built in the order of the log. `again` is an earlier event about the same record.
DispatchMessage(e) ==
    /\ mode \in {"serving", "cut"}
    /\ e.physical_offset = NextRecord
    /\ Names(e) /\ Whole(e)
    /\ End(e) <= wrote
    /\ SyncFlush => End(e) <= flushed
    /\ ends[e.queue] \in {e.queue_offset, Unknown}
    /\ e.again # 0 => /\ e.again <= taken
                      /\ EventAt(e.again).action = "DispatchMessage"
                      /\ EventAt(e.again).of = e.of /\ EventAt(e.again).tags_code = e.tags_code
    /\ dispatched' = End(e)
    /\ ends' = [ends EXCEPT ![e.queue] = e.queue_offset + 1]
    /\ lag' = IF lag[e.queue] = None THEN [lag EXCEPT ![e.queue] = e.physical_offset] ELSE lag
    /\ UNCHANGED <<mode, logVars, next, last, kept, indexed, ckpt, promised, startVars>>

\* A flush that began earlier leaves units: `of` wrote the record of the first one.
FlushQueue(e) ==
    /\ mode \in {"serving", "cut"}
    /\ kept[e.queue] <= e.flushed_to
    /\ IF e.flushed_to = ends[e.queue]
       THEN lag' = [lag EXCEPT ![e.queue] = None]
       ELSE /\ e.flushed_to < ends[e.queue]
            /\ Wrote(e.of, e.queue, e.flushed_to)
            /\ lag' = [lag EXCEPT ![e.queue] = EventAt(e.of).physical_offset]
    /\ kept' = [kept EXCEPT ![e.queue] = e.flushed_to]
    /\ UNCHANGED <<mode, logVars, next, last, ends, builtVars, promised, startVars>>

\* The last entry is that of a record with a key, so not always of the last record. `of` wrote it.
FlushIndex(e) ==
    /\ mode \in {"serving", "cut"}
    /\ indexed <= e.entries_to /\ e.entries_to <= NextRecord
    /\ IF e.flushed_to < Base THEN e.flushed_to >= -1
       ELSE /\ 0 < e.of /\ e.of <= taken
            /\ EventAt(e.of).action = "AppendMessage" /\ InLog(e.of)
            /\ EventAt(e.of).physical_offset = e.flushed_to /\ e.flushed_to < e.entries_to
    /\ indexed' = e.entries_to
    /\ UNCHANGED <<mode, logVars, queueVars, dispatched, ckpt, promised, startVars>>

\* `of` is the flush that told the time up to which the log is durable.
WriteCheckpoint(e) ==
    /\ mode \in {"serving", "cut"}
    /\ ckpt.to <= e.queues_to /\ e.queues_to <= Least(flushed, Least(NextRecord, indexed))
    /\ \A q \in Queue : lag[q] = None \/ lag[q] >= e.queues_to
    /\ e.of <= taken
    /\ e.log_ms = IF e.of = 0 THEN 0 ELSE EventAt(e.of).log_ms
    /\ e.of # 0 => EventAt(e.of).action \in {"FlushLog", "TruncateLog"} /\ EventAt(e.of).log_ms <= stamp.ms
    /\ e.log_ms >= ckpt.log_ms /\ e.index_ms >= ckpt.index_ms
    /\ e.index_ms <= e.queue_ms /\ e.queue_ms <= e.log_ms
    /\ ckpt' = [to |-> e.queues_to, log_ms |-> e.log_ms, queue_ms |-> e.queue_ms, index_ms |-> e.index_ms]
    /\ shaken' = FALSE
    /\ UNCHANGED <<mode, logVars, queueVars, dispatched, indexed, promised, abort, valid, trusted>>

ServeMessage(e) ==
    /\ mode = "serving"
    /\ Names(e) /\ Same(e) /\ Whole(e)
    /\ e.physical_offset >= first
    /\ End(e) <= dispatched
    /\ SyncFlush => End(e) <= flushed
    /\ UNCHANGED <<mode, logVars, queueVars, builtVars, promised, startVars>>

ExpireFile(e) ==
    /\ mode = "serving"
    /\ e.file_offset = first
    /\ e.min_offset \in files /\ e.min_offset > first
    /\ \A f \in files : f > first => f >= e.min_offset
    /\ e.min_offset <= Least(flushed, Least(dispatched, ckpt.to))
    /\ first' = e.min_offset
    /\ files' = files \ {e.file_offset}
    /\ rolls' = {r \in rolls : r[2] > e.min_offset}
    /\ UNCHANGED <<mode, wrote, flushed, survives, stamp, cuts, queueVars, builtVars, promised, startVars>>

\* Everything is dispatched and durable, and the checkpoint says so: the abort file may go.
Settled == mode = "serving" /\ flushed = wrote /\ ckpt.to = wrote /\ \A q \in Queue : lag[q] = None
StopStore(e) ==
    /\ Settled
    /\ e.valid_to = wrote
    /\ mode' = "down" /\ abort' = No
    /\ survives' = wrote
    /\ UNCHANGED <<first, wrote, flushed, stamp, files, rolls, cuts, queueVars, builtVars, promised, shaken, valid, trusted>>

------------------------------------------------------------------------------
(* The start *)

\* Of a store that was there before the trace nobody knows how it was left.
StartStore(e) ==
    /\ mode = "down"
    /\ e.was_clean \in (IF abort = Yes THEN {0} ELSE IF abort = No THEN {1} ELSE {0, 1})
    /\ mode' = "started" /\ abort' = Yes
    /\ UNCHANGED <<logVars, queueVars, builtVars, promised, shaken, valid, trusted>>

\* The file that holds a position; the end of the last file is in it.
FileOf(position) == CHOOSE f \in files : f <= position /\ \A g \in files : g <= position => g <= f

\* The scan ends before a record that is damaged. `next` wrote it.
AtDamage(e) ==
    /\ 0 < e.next /\ e.next <= taken
    /\ EventAt(e.next).action = "AppendMessage" /\ InLog(e.next)
    /\ EventAt(e.next).physical_offset = e.valid_to
    /\ EventAt(e.next).message \in flipped

\* `of` wrote what ends at the end of the scan. Nothing that is promised may lie behind it. The checkpoint is left
\* aside only when a power loss may have taken what it speaks of; `by_checkpoint` says which.
ScanLog(e) ==
    /\ mode = "started"
    /\ e.valid_to <= wrote
    /\ Boundary(e.valid_to, e.of)
    /\ Greatest(survives, promised) <= e.valid_to \/ AtDamage(e)
    /\ promised' = Least(promised, e.valid_to)
    /\ IF e.by_checkpoint
       THEN e.scan_from = (IF ckpt.to <= first THEN first ELSE FileOf(ckpt.to)) /\ ckpt.to <= e.valid_to
       ELSE e.scan_from = first /\ (shaken \/ ckpt.to = first)
    /\ mode' = "scanned"
    /\ valid' = e.valid_to
    /\ trusted' = e.by_checkpoint
    /\ ends' = [q \in Queue |-> Unknown]
    /\ kept' = ends'
    /\ lag' = [q \in Queue |-> None]
    /\ UNCHANGED <<logVars, next, last, builtVars, abort, shaken>>

\* No event of the store: the runner says, for each queue that a crash took records of, which was the first one.
Lost(e) ==
    /\ mode = "scanned"
    /\ Wrote(e.of, e.queue, e.queue_offset)
    /\ EventAt(e.of).physical_offset >= valid
    /\ IF e.again = 0 THEN e.queue_offset = 0
       ELSE Wrote(e.again, e.queue, e.queue_offset - 1) /\ EventAt(e.again).physical_offset < valid
    /\ next' = [next EXCEPT ![e.queue] = e.queue_offset]
    /\ last' = [last EXCEPT ![e.queue] = IF e.again = 0 THEN None ELSE EventAt(e.again).physical_offset]
    /\ UNCHANGED <<mode, logVars, ends, kept, lag, builtVars, promised, startVars>>

\* From where on units and entries are built again.
Rebuild == IF trusted THEN Greatest(first, ckpt.to) ELSE first

\* A queue keeps the units of the records before that. `of` wrote the record of the first one that goes, `again` that of
\* the last one that stays.
TruncateQueue(e) ==
    /\ mode = "scanned"
    /\ e.valid_to = valid
    /\ ends[e.queue] = Unknown
    /\ e.queue_offset_end >= 0
    /\ e.of # 0 => /\ Wrote(e.of, e.queue, e.queue_offset_end)
                   /\ EventAt(e.of).physical_offset >= Least(Rebuild, valid)
    /\ e.of = 0 => next[e.queue] \in {Unknown, e.queue_offset_end}
    /\ e.again # 0 => /\ Wrote(e.again, e.queue, e.queue_offset_end - 1)
                      /\ EventAt(e.again).physical_offset < Least(Rebuild, valid)
    /\ e.again = 0 => e.queue_offset_end = 0 \/ next[e.queue] = Unknown \/ Base > 0
    /\ ends' = [ends EXCEPT ![e.queue] = e.queue_offset_end]
    /\ kept' = [kept EXCEPT ![e.queue] = e.queue_offset_end]
    /\ UNCHANGED <<mode, logVars, next, last, lag, builtVars, promised, startVars>>

TruncateLog(e) ==
    /\ mode = "scanned"
    /\ e.valid_to = valid
    /\ \A q \in Queue : last[q] < valid
    /\ IF valid = stamp.to THEN e.log_ms = stamp.ms \/ (Base > 0 /\ stamp.at = 0) ELSE e.log_ms >= stamp.ms
    /\ mode' = "cut"
    /\ wrote' = valid /\ flushed' = valid /\ survives' = valid
    /\ stamp' = [ms |-> e.log_ms, to |-> valid, at |-> taken + 1]
    /\ files' = {f \in files : f <= valid}
    /\ rolls' = {r \in rolls : r[2] <= valid}
    /\ cuts' = IF valid = wrote THEN cuts ELSE Append(cuts, [at |-> taken + 1, to |-> valid])
    /\ dispatched' = Least(valid, Rebuild) /\ indexed' = dispatched'
    /\ ckpt' = IF trusted THEN ckpt ELSE [ckpt EXCEPT !.to = first, !.queue_ms = 0, !.index_ms = 0]
    /\ UNCHANGED <<first, queueVars, promised, startVars>>

\* A recovery ends with a checkpoint that says that everything is done.
FinishRecovery(e) ==
    /\ mode = "cut"
    /\ e.valid_to = wrote /\ e.min_offset = first
    /\ NextRecord = wrote /\ ckpt.to \in {dispatched, wrote}
    /\ mode' = "serving"
    /\ ends' = [q \in Queue |-> IF ends[q] = Unknown THEN next[q] ELSE ends[q]]
    /\ UNCHANGED <<logVars, next, last, kept, lag, builtVars, promised, startVars>>

------------------------------------------------------------------------------
(* The world *)

\* A start may have died before it could tell that it began, and then the abort file may be there; and a stop before it could
\* tell that it had ended, and then it may not.
Down ==
    /\ mode' = "down"
    /\ abort' = IF (mode = "down" /\ abort = No) \/ Settled THEN Maybe ELSE abort
    /\ UNCHANGED <<first, wrote, flushed, stamp, files, rolls, cuts, queueVars, builtVars, valid, trusted>>

\* What is not durable may be gone.
Shaken ==
    /\ survives' = flushed
    /\ promised' = IF SyncFlush THEN promised ELSE Least(promised, flushed)
    /\ shaken' = TRUE

\* Everything written survives; until a recovery has cut the log that is what survived before. Of pages that could not be
\* flushed nobody knows.
ProcessCrash(e) ==
    /\ Down
    /\ IF refused THEN Shaken
       ELSE survives' = (IF mode = "serving" THEN wrote ELSE survives) /\ UNCHANGED <<promised, shaken>>

PowerLoss(e) == Down /\ Shaken

\* The disk begins to refuse flushes, or a bit of a message flips. When a store notices no event tells: it stops then, and
\* its process ends.
Noted == UNCHANGED <<mode, logVars, queueVars, builtVars, promised, startVars>>
World(e) ==
    /\ refused' = (e.action = "FailFlush" \/ (refused /\ e.action # "FinishRecovery"))
    /\ flipped' = IF e.action = "FlipBit" THEN flipped \cup {e.message} ELSE flipped

------------------------------------------------------------------------------
Step(e) ==
    CASE e.action = "AppendMessage"   -> AppendMessage(e)
      [] e.action = "DispatchMessage" -> DispatchMessage(e)
      [] e.action = "ServeMessage"    -> ServeMessage(e)
      [] e.action = "AckPut"          -> AckPut(e)
      [] e.action = "FlushLog"        -> FlushLog(e)
      [] e.action = "FlushQueue"      -> FlushQueue(e)
      [] e.action = "FlushIndex"      -> FlushIndex(e)
      [] e.action = "WriteCheckpoint" -> WriteCheckpoint(e)
      [] e.action = "RollFile"        -> RollFile(e)
      [] e.action = "ExpireFile"      -> ExpireFile(e)
      [] e.action = "StartStore"      -> StartStore(e)
      [] e.action = "ScanLog"         -> ScanLog(e)
      [] e.action = "Lost"            -> Lost(e)
      [] e.action = "TruncateQueue"   -> TruncateQueue(e)
      [] e.action = "TruncateLog"     -> TruncateLog(e)
      [] e.action = "FinishRecovery"  -> FinishRecovery(e)
      [] e.action = "StopStore"       -> StopStore(e)
      [] e.action = "ProcessCrash"    -> ProcessCrash(e)
      [] e.action = "PowerLoss"       -> PowerLoss(e)
      [] e.action \in {"FailFlush", "FlipBit"} -> Noted
      [] OTHER -> FALSE

TraceNext == taken < EventCount /\ taken' = taken + 1 /\ Step(EventAt(taken + 1)) /\ World(EventAt(taken + 1))

vars == <<taken, mode, logVars, queueVars, builtVars, promised, startVars, refused, flipped>>
TraceSpec == Init /\ [][TraceNext]_vars

\* How far it has come; TLC prints it now and then.
Tell == IF taken % 1000 = 0 \/ taken = EventCount THEN PrintT(<<"taken", taken>>) ELSE TRUE
==============================================================================
