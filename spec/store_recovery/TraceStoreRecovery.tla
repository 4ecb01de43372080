------------------------- MODULE TraceStoreRecovery -------------------------
(***************************************************************************)
(* Is a recorded trace of a store a behaviour of StoreRecovery? Every      *)
(* event is one step whose outcome the event determines, so TLC follows a  *)
(* single path; what an event says of offsets is compared with the state.  *)
(*                                                                         *)
(* The store counts bytes, the specification positions: `at` remembers at  *)
(* which byte each position begins, and `body` which message the trace     *)
(* says is there: the specification numbers messages as they are appended, *)
(* a trace gives a message and its copies one number. A trace begins with  *)
(* an empty directory.                                                     *)
(*                                                                         *)
(* Every step is one of Next, or FlushPart, or takes an event that says    *)
(* nothing new (StepsOfTheStore, which TLC checks besides).                *)
(*                                                                         *)
(* The reference store takes some steps at once that are several here, and *)
(* begins to dispatch in the middle of a file where this one begins at its *)
(* start. Such steps have no event; Quiet takes them when the next event   *)
(* needs them, in a fixed order. A power loss does not say what it took:   *)
(* the next scan does, and TakePowerLoss looks ahead to it. A trace whose  *)
(* process died between the writing of a record and its event is not       *)
(* accepted. Times are not compared: a record's time is its position here. *)
(***************************************************************************)
EXTENDS StoreRecovery, Integers

CONSTANT Events

VARIABLES taken,  \* how many events have been taken
          at,     \* at[p]: the byte at which position p begins, -1 if that is not known
          body    \* body[p]: the message of the record at p, as the trace names it, 0 without one
places == <<at, body>>

QueueOf(e) == <<e.subject, e.queue_id>>
TraceQueues == {QueueOf(Events[i]) : i \in {j \in DOMAIN Events : Events[j].action = "AppendMessage"}}
\* The first bytes of the files, and room in each for as many records as any of them ever held.
FileStarts == {0} \cup {Events[i].next_file_offset : i \in {j \in DOMAIN Events : Events[j].action = "RollFile"}}
RecordStarts == {Events[i].physical_offset : i \in {j \in DOMAIN Events : Events[j].action = "AppendMessage"}}
InFile(start) == {b \in RecordStarts : b >= start /\ \A other \in FileStarts : other > start => b < other}
TraceFileSize == 2 + (CHOOSE n \in 0..Cardinality(RecordStarts) :
                         /\ \A start \in FileStarts : Cardinality(InFile(start)) <= n
                         /\ n > 0 => \E start \in FileStarts : Cardinality(InFile(start)) = n)
TraceLogSize == TraceFileSize * Cardinality(FileStarts)

Known(byte) == byte >= 0 /\ \E p \in 0..LogSize : at[p] = byte
PositionAt(byte) == CHOOSE p \in 0..LogSize : at[p] = byte

TraceInit == Init /\ taken = 0 /\ at = [p \in 0..LogSize |-> IF p = 0 THEN 0 ELSE -1] /\ body = [p \in 0..LogSize |-> 0]

Event == Events[taken + 1]
Is(name) == taken < Len(Events) /\ Event.action = name
Take == taken' = taken + 1
TakeOnly == Take /\ UNCHANGED <<vars, places>>

------------------------------------------------------------------------------
(* The running store *)

TakeAppendMessage ==
    /\ Is("AppendMessage")
    /\ at[wrote] = Event.physical_offset
    /\ NextOffset(QueueOf(Event)) = Event.queue_offset
    /\ Event.message > 0 /\ Event.size_bytes > 0
    /\ AppendMessage(QueueOf(Event))
    /\ body' = [body EXCEPT ![wrote] = Event.message]
    /\ at' = [at EXCEPT ![wrote + 1] = Event.physical_offset + Event.size_bytes]
    /\ Take

\* When there is nothing to close, the file at the end of the log is only created.
TakeRollFile ==
    /\ Is("RollFile")
    /\ at[wrote] = Event.physical_offset
    /\ IF Event.next_file_offset = Event.physical_offset
       THEN mode = "serving" /\ wrote = FileStart(wrote) /\ TakeOnly
       ELSE /\ RollFile
            /\ at' = [at EXCEPT ![FileEnd(wrote)] = Event.next_file_offset]
            /\ UNCHANGED body
            /\ Take

\* A flush that began before the newest records were written: FlushLog up to a position inside the file. (One of several
\* files is several FlushLog: Quiet takes all but the last.)
FlushPart(to) ==
    /\ mode = "serving"
    /\ flushed < to /\ to < Least(wrote, FileEnd(flushed))
    /\ disk' = [p \in Position |-> IF FileStart(flushed) <= p /\ p < to THEN cell[p] ELSE disk[p]]
    /\ flushed' = to
    /\ UNCHANGED <<mode, cell, first, wrote, queueVars, ends, dispatched, indexVars, ckpt, abort, clean, valid, cut,
                   clientVars, waiting, goal, faults>>

TakeFlushLog ==
    /\ Is("FlushLog")
    /\ mode = "serving"
    /\ Known(Event.flushed_to)
    /\ \E to \in {PositionAt(Event.flushed_to)} :
          IF to = flushed THEN TakeOnly      \* two flushes that began together
          ELSE /\ flushed < to /\ to <= FileEnd(flushed)
               /\ IF to = Least(wrote, FileEnd(flushed)) THEN FlushLog ELSE FlushPart(to)
               /\ UNCHANGED places
               /\ Take

\* Status 1 says that the disk was too slow, and promises nothing.
TakeAckPut ==
    /\ Is("AckPut")
    /\ mode = "serving"
    /\ Known(Event.physical_offset)
    /\ \E p \in {PositionAt(Event.physical_offset)} :
          /\ p < wrote /\ IsRecord(cell[p])
          /\ cell[p].q = QueueOf(Event) /\ cell[p].o = Event.queue_offset /\ body[p] = Event.message
          /\ cell[p].m \in waiting
          /\ \/ Event.status = 0 /\ AckPut(p) /\ UNCHANGED places /\ Take
             \/ Event.status = 1 /\ SyncFlush /\ flushed <= p /\ TakeOnly

TakeDispatchMessage ==
    /\ Is("DispatchMessage")
    /\ ~AllDispatched
    /\ \E p \in {NextRecord} :
          /\ at[p] = Event.physical_offset
          /\ cell[p].q = QueueOf(Event)
          /\ cell[p].o = Event.queue_offset
          /\ at[p + 1] - at[p] = Event.size_bytes
    /\ DispatchMessage
    /\ UNCHANGED places
    /\ Take

TakeFlushQueue ==
    /\ Is("FlushQueue")
    /\ mode \in {"serving", "cut"}
    /\ Event.flushed_to = ends[QueueOf(Event)]
    /\ IF unitDisk[QueueOf(Event)] # unit[QueueOf(Event)]
       THEN FlushQueue(QueueOf(Event)) /\ UNCHANGED places /\ Take
       ELSE TakeOnly

\* Where the next record to dispatch is, in bytes: dispatch may have passed the end of a file already.
Reached == {at[dispatched]} \cup (IF dispatched < wrote /\ cell[dispatched] = Blank THEN {at[FileEnd(dispatched)]} ELSE {})

\* The last entry may be older than the last record, which may have no key.
TakeFlushIndex ==
    /\ Is("FlushIndex")
    /\ mode \in {"serving", "cut"}
    /\ Event.entries_to \in Reached
    /\ IF Known(Event.flushed_to) THEN PositionAt(Event.flushed_to) < dispatched ELSE Event.flushed_to = -1
    /\ IF mode = "serving" /\ indexDisk # index THEN FlushIndex /\ UNCHANGED places /\ Take ELSE TakeOnly

\* The reference also writes a checkpoint at the end of a recovery.
TakeWriteCheckpoint ==
    /\ Is("WriteCheckpoint")
    /\ mode \in {"serving", "cut"}
    /\ Event.queues_to \in Reached
    /\ mode = "serving" => Stamps.queue = dispatched /\ Stamps.index = dispatched
    /\ Event.index_ms <= Event.queue_ms /\ Event.queue_ms <= Event.log_ms
    /\ IF mode = "serving" /\ ckpt # Stamps THEN WriteCheckpoint /\ UNCHANGED places /\ Take ELSE TakeOnly

TakeServeMessage ==
    /\ Is("ServeMessage")
    /\ mode = "serving"
    /\ Event.queue_offset < ends[QueueOf(Event)]
    /\ \E p \in {unit[QueueOf(Event)][Event.queue_offset]} :
          /\ IsPosition(p)
          /\ at[p] = Event.physical_offset
          /\ body[p] = Event.message /\ at[p + 1] - at[p] = Event.size_bytes
          /\ IF [q |-> QueueOf(Event), o |-> Event.queue_offset, p |-> p, m |-> cell[p].m] \in seen
             THEN TakeOnly
             ELSE ServeMessage(QueueOf(Event), Event.queue_offset) /\ UNCHANGED places /\ Take

TakeExpireFile ==
    /\ Is("ExpireFile")
    /\ at[first] = Event.file_offset
    /\ ExpireFile
    /\ at[first'] = Event.min_offset
    /\ UNCHANGED places
    /\ Take

TakeStopStore == Is("StopStore") /\ at[wrote] = Event.valid_to /\ StopStore /\ UNCHANGED places /\ Take

------------------------------------------------------------------------------
(* The start *)

TakeStartStore == Is("StartStore") /\ Event.was_clean = (IF abort THEN 0 ELSE 1) /\ StartStore /\ UNCHANGED places /\ Take

\* The store begins its scan no earlier than the specification does, at the start of a file.
TakeScanLog ==
    /\ Is("ScanLog")
    /\ ScanLog
    /\ at[valid'] = Event.valid_to
    /\ Known(Event.scan_from)
    /\ \E from \in {PositionAt(Event.scan_from)} : from = FileStart(from) /\ ScanStart <= from /\ from <= valid'
    /\ UNCHANGED places
    /\ Take

\* The reference cuts a queue back to what it knows to be durable and writes the rest again; never less than needed.
TakeTruncateQueue ==
    /\ Is("TruncateQueue")
    /\ mode = "scanned"
    /\ at[valid] = Event.valid_to
    /\ Event.queue_offset_end <= KeptUnits(QueueOf(Event))
    /\ TakeOnly

TakeTruncateLog ==
    /\ Is("TruncateLog")
    /\ at[valid] = Event.valid_to
    /\ TruncateLog
    /\ at' = [p \in 0..LogSize |-> IF p > valid THEN -1 ELSE at[p]]
    /\ body' = [p \in 0..LogSize |-> IF p >= valid THEN 0 ELSE body[p]]
    /\ Take

TakeFinishRecovery ==
    /\ Is("FinishRecovery")
    /\ at[wrote] = Event.valid_to
    /\ at[first] = Event.min_offset
    /\ FinishRecovery
    /\ UNCHANGED places
    /\ Take

\* Steps without an event.
MustFlushLog == flushed < wrote \/ ~LogTailDurable
OpenTails == {q \in Queue : ~QueueTailDurable(q)}
Quiet ==
    /\ taken < Len(Events)
    /\ UNCHANGED <<taken, places>>
    /\ \/ /\ Is("FlushLog") /\ mode = "serving" /\ Known(Event.flushed_to)
          /\ FileEnd(flushed) < PositionAt(Event.flushed_to) /\ FileEnd(flushed) < wrote
          /\ FlushLog
       \/ Is("TruncateLog") /\ mode = "scanned" /\ cut # Queue /\ TruncateQueue(CHOOSE q \in Queue \ cut : TRUE)
       \/ mode = "cut" /\ MustFlushLog /\ FlushLog
       \/ mode = "cut" /\ ~MustFlushLog /\ OpenTails # {} /\ FlushQueue(CHOOSE q \in OpenTails : TRUE)
       \/ /\ mode = "cut" /\ ~MustFlushLog /\ OpenTails = {} /\ ~AllDispatched
          /\ \/ Is("FinishRecovery")
             \/ Is("DispatchMessage") /\ at[NextRecord] < Event.physical_offset
          /\ DispatchMessage

------------------------------------------------------------------------------
(* The world *)

TakeProcessCrash == Is("ProcessCrash") /\ ProcessCrash /\ cell' = cell /\ ckpt' = ckpt /\ UNCHANGED places /\ Take

\* How much of the log the next scan finds.
ComingScans == {i \in (taken + 2)..Len(Events) : Events[i].action = "ScanLog"}
NextValidByte == Events[CHOOSE i \in ComingScans : \A j \in ComingScans : i <= j].valid_to
Found == IF ComingScans = {} THEN 0 ELSE IF Known(NextValidByte) THEN PositionAt(NextValidByte) ELSE LogSize

\* What a fault takes from the disk, of all that it could take: of the log what the next scan does not find, of queues and
\* index everything that was not durable. (The configuration puts these in the place of Losses, UnitLosses, EntryLosses.)
FoundLosses == {[p \in LogDirty |-> IF p < Found THEN "kept" ELSE "lost"]}
AllUnits == {UnitsDirty}
AllEntries == {EntriesDirty}

TakePowerLoss == Is("PowerLoss") /\ PowerLoss /\ ckpt' = ckpt /\ UNCHANGED places /\ Take
TakeFailFlush == Is("FailFlush") /\ FailFlush /\ UNCHANGED places /\ Take

TakeRemoveQueues == Is("RemoveQueues") /\ RemoveQueues /\ UNCHANGED places /\ Take

------------------------------------------------------------------------------
TraceNext ==
    \/ TakeAppendMessage \/ TakeRollFile \/ TakeFlushLog \/ TakeAckPut \/ TakeDispatchMessage \/ TakeFlushQueue
    \/ TakeFlushIndex \/ TakeWriteCheckpoint \/ TakeServeMessage \/ TakeExpireFile \/ TakeStopStore
    \/ TakeStartStore \/ TakeScanLog \/ TakeTruncateQueue \/ TakeTruncateLog \/ TakeFinishRecovery
    \/ Quiet
    \/ TakeProcessCrash \/ TakePowerLoss \/ TakeFailFlush \/ TakeRemoveQueues

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, taken, places>>

\* Acceptance is refinement.
StepsOfTheStore == [][Next \/ \E to \in Position : FlushPart(to)]_vars
=============================================================================
