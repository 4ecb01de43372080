------------------------- MODULE TraceStoreRecovery -------------------------
(***************************************************************************)
(* Is a recorded trace of a store a behaviour of StoreRecovery? Every      *)
(* event is one step whose outcome the event determines, so TLC follows a  *)
(* single path; what an event says of offsets is compared with the state.  *)
(*                                                                         *)
(* The store counts bytes, the specification positions: `at` remembers at  *)
(* which byte each position begins. A trace begins with an empty directory.*)
(*                                                                         *)
(* The reference store takes some steps at once that are several here, and *)
(* begins to dispatch in the middle of a file where this one begins at its *)
(* start. Such steps have no event; Quiet takes them when the next event   *)
(* needs them, in a fixed order. A power loss does not say what it took:   *)
(* the next scan does, and TakePowerLoss looks ahead to it. A trace whose  *)
(* process died between the writing of a record and its event is not       *)
(* accepted.                                                               *)
(***************************************************************************)
EXTENDS StoreRecovery, Integers

CONSTANT Events

VARIABLES taken,  \* how many events have been taken
          at      \* at[p]: the byte at which position p begins, -1 if that is not known

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

Known(byte) == \E p \in 0..LogSize : at[p] = byte
PositionAt(byte) == CHOOSE p \in 0..LogSize : at[p] = byte

TraceInit == Init /\ taken = 0 /\ at = [p \in 0..LogSize |-> IF p = 0 THEN 0 ELSE -1]

Event == Events[taken + 1]
Is(name) == taken < Len(Events) /\ Event.action = name
Take == taken' = taken + 1
TakeOnly == Take /\ UNCHANGED <<vars, at>>

------------------------------------------------------------------------------
(* The running store *)

TakeAppendMessage ==
    /\ Is("AppendMessage")
    /\ at[wrote] = Event.physical_offset
    /\ NextOffset(QueueOf(Event)) = Event.queue_offset
    /\ sent + 1 = Event.message
    /\ AppendMessage(QueueOf(Event))
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
            /\ Take

\* A flush of several files, or one that began before the newest records were written: FlushLog up to a position.
TakeFlushLog ==
    /\ Is("FlushLog")
    /\ mode = "serving"
    /\ Known(Event.flushed_to)
    /\ \E to \in {PositionAt(Event.flushed_to)} :
          /\ flushed < to
          /\ to <= wrote
          /\ disk' = [p \in Position |-> IF FileStart(flushed) <= p /\ p < to THEN cell[p] ELSE disk[p]]
          /\ flushed' = to
    /\ UNCHANGED <<mode, cell, first, wrote, queueVars, ends, dispatched, indexVars, ckpt, abort, clean, valid, cut,
                   clientVars, waiting, goal, faults, at>>
    /\ Take

\* A status other than 0 promises nothing.
TakeAckPut ==
    /\ Is("AckPut")
    /\ IF Event.status = 0 /\ Event.message \notin promised
       THEN /\ Known(Event.physical_offset)
            /\ \E p \in {PositionAt(Event.physical_offset)} :
                  /\ cell[p] = [m |-> Event.message, q |-> QueueOf(Event), o |-> Event.queue_offset]
                  /\ AckPut(p)
            /\ UNCHANGED at
            /\ Take
       ELSE TakeOnly

TakeDispatchMessage ==
    /\ Is("DispatchMessage")
    /\ ~AllDispatched
    /\ \E p \in {NextRecord} :
          /\ at[p] = Event.physical_offset
          /\ cell[p].q = QueueOf(Event)
          /\ cell[p].o = Event.queue_offset
    /\ DispatchMessage
    /\ UNCHANGED at
    /\ Take

TakeFlushQueue ==
    /\ Is("FlushQueue")
    /\ mode = "serving" => Event.flushed_to = ends[QueueOf(Event)]
    /\ IF unitDisk[QueueOf(Event)] # unit[QueueOf(Event)]
       THEN FlushQueue(QueueOf(Event)) /\ UNCHANGED at /\ Take
       ELSE TakeOnly

TakeFlushIndex ==
    /\ Is("FlushIndex")
    /\ IF mode = "serving" /\ indexDisk # index THEN FlushIndex /\ UNCHANGED at /\ Take ELSE TakeOnly

\* The reference also writes a checkpoint at the end of a recovery.
TakeWriteCheckpoint ==
    /\ Is("WriteCheckpoint")
    /\ IF mode = "serving" /\ ckpt # Stamps THEN WriteCheckpoint /\ UNCHANGED at /\ Take ELSE TakeOnly

TakeServeMessage ==
    /\ Is("ServeMessage")
    /\ mode = "serving"
    /\ Event.queue_offset < ends[QueueOf(Event)]
    /\ \E p \in {unit[QueueOf(Event)][Event.queue_offset]} :
          /\ IsPosition(p)
          /\ at[p] = Event.physical_offset
          /\ cell[p].m = Event.message
          /\ IF [q |-> QueueOf(Event), o |-> Event.queue_offset, p |-> p, m |-> Event.message] \in seen
             THEN TakeOnly
             ELSE ServeMessage(QueueOf(Event), Event.queue_offset) /\ UNCHANGED at /\ Take

TakeExpireFile ==
    /\ Is("ExpireFile")
    /\ at[first] = Event.file_offset
    /\ ExpireFile
    /\ at[first'] = Event.min_offset
    /\ UNCHANGED at
    /\ Take

TakeStopStore == Is("StopStore") /\ at[wrote] = Event.valid_to /\ StopStore /\ UNCHANGED at /\ Take

------------------------------------------------------------------------------
(* The start *)

TakeStartStore == Is("StartStore") /\ (Event.was_clean = 1) = ~abort /\ StartStore /\ UNCHANGED at /\ Take

TakeScanLog == Is("ScanLog") /\ ScanLog /\ at[valid'] = Event.valid_to /\ UNCHANGED at /\ Take

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
    /\ Take

TakeFinishRecovery ==
    /\ Is("FinishRecovery")
    /\ at[wrote] = Event.valid_to
    /\ at[first] = Event.min_offset
    /\ FinishRecovery
    /\ UNCHANGED at
    /\ Take

\* Steps without an event.
MustFlushLog == flushed < wrote \/ ~LogTailDurable
OpenTails == {q \in Queue : ~QueueTailDurable(q)}
Quiet ==
    /\ taken < Len(Events)
    /\ UNCHANGED <<taken, at>>
    /\ \/ Is("TruncateLog") /\ mode = "scanned" /\ cut # Queue /\ TruncateQueue(CHOOSE q \in Queue \ cut : TRUE)
       \/ mode = "cut" /\ MustFlushLog /\ FlushLog
       \/ mode = "cut" /\ ~MustFlushLog /\ OpenTails # {} /\ FlushQueue(CHOOSE q \in OpenTails : TRUE)
       \/ /\ mode = "cut" /\ ~MustFlushLog /\ OpenTails = {} /\ ~AllDispatched
          /\ \/ Is("FinishRecovery")
             \/ Is("DispatchMessage") /\ at[NextRecord] < Event.physical_offset
          /\ DispatchMessage

------------------------------------------------------------------------------
(* The world *)

TakeProcessCrash == Is("ProcessCrash") /\ ProcessCrash /\ cell' = cell /\ ckpt' = ckpt /\ UNCHANGED at /\ Take

\* How much of the log the next scan finds.
ComingScans == {i \in (taken + 2)..Len(Events) : Events[i].action = "ScanLog"}
NextValidByte == Events[CHOOSE i \in ComingScans : \A j \in ComingScans : i <= j].valid_to
Found == IF ComingScans = {} THEN 0 ELSE IF Known(NextValidByte) THEN PositionAt(NextValidByte) ELSE LogSize

LoseLog ==
    /\ cell' = [p \in Position |-> IF p < Found THEN cell[p] ELSE disk[p]]
    /\ disk' = cell'
    /\ goal' = ValidEnd(cell', first)
    /\ promised' = StillPromised
    /\ ForgetMemory
    /\ faults' = faults + 1

\* PowerLoss with what the next scan finds; of queues and index everything that was not durable is lost.
TakePowerLoss ==
    /\ Is("PowerLoss")
    /\ LoseLog
    /\ unit' = unitDisk
    /\ index' = indexDisk
    /\ UNCHANGED <<unitDisk, indexDisk, first, queueFiles, ckpt, abort, clean, sent, gone, seen, at>>
    /\ Take

TakeFailFlush ==
    /\ Is("FailFlush")
    /\ mode = "serving"
    /\ flushed < wrote
    /\ LoseLog
    /\ UNCHANGED <<first, queueVars, indexVars, ckpt, abort, clean, sent, gone, seen, at>>
    /\ Take

TakeRemoveQueues == Is("RemoveQueues") /\ RemoveQueues /\ UNCHANGED at /\ Take

------------------------------------------------------------------------------
TraceNext ==
    \/ TakeAppendMessage \/ TakeRollFile \/ TakeFlushLog \/ TakeAckPut \/ TakeDispatchMessage \/ TakeFlushQueue
    \/ TakeFlushIndex \/ TakeWriteCheckpoint \/ TakeServeMessage \/ TakeExpireFile \/ TakeStopStore
    \/ TakeStartStore \/ TakeScanLog \/ TakeTruncateQueue \/ TakeTruncateLog \/ TakeFinishRecovery
    \/ Quiet
    \/ TakeProcessCrash \/ TakePowerLoss \/ TakeFailFlush \/ TakeRemoveQueues

TraceSpec == TraceInit /\ [][TraceNext]_<<vars, taken, at>>
=============================================================================
