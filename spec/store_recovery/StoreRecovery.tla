---------------------------- MODULE StoreRecovery ----------------------------
(***************************************************************************)
(* One store directory of a broker: the commit log, the consume queues and *)
(* the index that are built from it, the checkpoint and the abort file;    *)
(* what a crash leaves of them, and how a start puts them right again.     *)
(*                                                                         *)
(* Modelled: records in files of the log, each file closed by a blank      *)
(* record; what is written (in the page cache) apart from what is durable; *)
(* flushing file by file; sync and async flush; dispatch into several      *)
(* queues and the index, each flushed on its own; the checkpoint; removal  *)
(* of old files; a start in steps, so that a crash can fall between any    *)
(* two: start, scan, cut each queue, cut the log, dispatch again, finish.  *)
(* Faults: the process dies (with half a record written, too); the power   *)
(* fails and any subset of what was not flushed is lost, a record can be   *)
(* torn, a file can be longer than its content, a half-written checkpoint  *)
(* can mix old and new stamps; a flush reports an error; an operator       *)
(* removes the consume queues to have them rebuilt.                        *)
(*                                                                         *)
(* Left out: sizes (a record takes one position; a record that does not    *)
(* fit any more is a file that is closed early), times (a record's time is *)
(* its position; the 3 s slack of the checkpoint is 0), tags and keys, the *)
(* transient store pool, JSON files. RocketMQ 4.9.8                        *)
(* dispatches while it scans and cuts the log before the queues; this      *)
(* module has the order of 5.3.3 (queues first), with every crash in       *)
(* between. The next file of a full one always exists (RocketMQ allocates  *)
(* it ahead). A put that was answered with a flush timeout promises        *)
(* nothing and is left out.                                                *)
(*                                                                         *)
(* A position of the log holds Zero (nothing), Blank (end of file), Torn   *)
(* (bytes that no scan accepts) or a record [m, q, o]: message m is number *)
(* o of queue q. A unit of a queue is Zero, Fill (written before the first *)
(* unit of a queue that does not begin at 0) or a position.                *)
(*                                                                         *)
(* Read from: DefaultMessageStore, CommitLog, ConsumeQueue, IndexService,  *)
(* StoreCheckpoint, MappedFileQueue; RocketMQ 4.9.8, with 5.3.3 where said.*)
(***************************************************************************)
EXTENDS Naturals, FiniteSets, Sequences

CONSTANTS
    Queue,          \* the consume queues
    FileSize,       \* positions in a file of the log, the last one for the blank record
    LogSize,        \* positions on the disk: a multiple of FileSize
    QueueFileSize,  \* units in a file of a queue
    SyncFlush,      \* TRUE: a put is acknowledged when it is durable; FALSE: when it is written
    Zero, Blank, Torn, Fill

\* Where RocketMQ 4.9.8 is weak: FALSE is what it does, TRUE the repair.
CONSTANTS
    ZeroTailOnTruncate,   \* what is cut off is overwritten with zeros, durably, before anything new is written
    DispatchBehindFlush,  \* with sync flush only durable records are dispatched (5.3.3 does this)
    FlushOnRecovery,      \* what recovery finds is flushed before it counts as flushed
    AbortBeforeRecovery,  \* the abort file is created before the first change and not after the last
    FsyncFailureStops,    \* a failed flush stops the store and does not count as a flush
    CheckpointBehindData, \* the checkpoint covers durable queue units only
    ValidateFirstUnit,    \* an empty last file of a queue is empty, it does not hold one unit
    IgnoreFillUnits,      \* units before the first one say nothing about what has been dispatched
    PlaceByNumber,        \* a unit is written in the place of its number, not at the end of the queue
    IndexInScan,          \* the scan begins early enough for the index as well
    CutIndex,             \* index entries past the end of the log are dropped
    FlushIndexAtStop      \* a clean stop flushes the index

VARIABLES
    mode,        \* "down", "started", "scanned", "cut" or "serving"
    cell,        \* the log as it is written: position -> content
    disk,        \* the log as it is durable
    first,       \* the log's first position: older files are removed
    wrote,       \* end of the log, in memory
    flushed,     \* end of what counts as durable, in memory
    unit,        \* unit[q][i]: unit i of queue q as written
    unitDisk,    \* ... as durable
    queueFiles,  \* how many files queue q has
    ends,        \* how many units queue q has, in memory
    dispatched,  \* records before this position have been dispatched, in memory
    index,       \* entries <<position, message>> as written
    indexDisk,   \* ... as durable
    ckpt,        \* the checkpoint: [log, queue, index], durable at once
    abort,       \* whether the abort file exists
    clean,       \* whether the present start found no abort file
    valid,       \* where the scan ended
    cut,         \* the queues that recovery has cut already
    sent,        \* how many messages have been sent: message n is the n-th
    waiting,     \* messages that were written and not yet acknowledged
    promised,    \* messages whose survival is promised to their producer
    gone,        \* messages whose file was removed
    seen,        \* what consumers got: [q, o, m, p]
    goal,        \* where the log ended when it crashed: every recovery has to arrive there
    faults       \* how many faults there were

logVars   == <<cell, disk, first>>
queueVars == <<unit, unitDisk, queueFiles>>
indexVars == <<index, indexDisk>>
clientVars == <<sent, promised, gone, seen>>
vars == <<mode, logVars, wrote, flushed, queueVars, ends, dispatched, indexVars, ckpt, abort, clean, valid, cut,
          clientVars, waiting, goal, faults>>

Serving == mode = "serving"
Position == 0..(LogSize - 1)
UnitNumber == 0..(LogSize - 1)
Nothing == [p \in Position |-> Zero]
NoUnits == [q \in Queue |-> [i \in UnitNumber |-> Zero]]
NoStamps == [log |-> 0, queue |-> 0, index |-> 0]

Least(a, b)    == IF a <= b THEN a ELSE b
Greatest(a, b) == IF a >= b THEN a ELSE b

\* The first number from..to for which Stop holds, `to` if there is none; the last one, `from` if there is none.
\* (Written with care for TLC, which evaluates an argument again wherever it occurs.)
FirstThat(Stop(_), from, to) == CHOOSE n \in from..to : (n = to \/ Stop(n)) /\ \A k \in from..(n - 1) : ~Stop(k)
LastThat(Good(_), from, to)  == CHOOSE n \in from..to : (n = from \/ Good(n)) /\ \A k \in (n + 1)..to : ~Good(k)

FileStart(p) == p - (p % FileSize)
FileEnd(p)   == FileStart(p) + FileSize
LastOfFile(p) == p % FileSize = FileSize - 1
IsRecord(c)  == c \notin {Zero, Blank, Torn}
IsPosition(u) == u \notin {Zero, Fill}

\* What follows a blank record in its file has no meaning.
BehindBlank(log, p) == \E b \in FileStart(p)..(p - 1) : log[b] = Blank

\* Where a scan of `log` that begins at `from` ends: at the first position that holds nothing or something torn.
ValidEnd(log, from) ==
    LET Bad(p) == log[p] \in {Zero, Torn} /\ ~BehindBlank(log, p) IN FirstThat(Bad, from, LogSize)

RecordsIn(log, from, to) == {p \in from..(to - 1) : IsRecord(log[p]) /\ ~BehindBlank(log, p)}
MessagesIn(log, from, to) == {log[p].m : p \in RecordsIn(log, from, to)}

\* The records that a power loss cannot take: durable, and so is everything before them.
DurableEnd ==
    LET Unsure(p) == (disk[p] \in {Zero, Torn} \/ disk[p] # cell[p]) /\ ~BehindBlank(disk, p)
    IN  FirstThat(Unsure, first, LogSize)

\* How far every record has a durable unit, and how far a durable index entry.
HasRecord(log, p) == IsRecord(log[p]) /\ ~BehindBlank(log, p)
LacksUnit(p)  == IF HasRecord(cell, p) THEN unitDisk[cell[p].q][cell[p].o] # p ELSE FALSE
LacksEntry(p) == IF HasRecord(cell, p) THEN <<p, cell[p].m>> \notin indexDisk ELSE FALSE
DurablyQueued  == FirstThat(LacksUnit, first, dispatched)
DurablyIndexed == FirstThat(LacksEntry, first, dispatched)

\* The number that the next message of q gets: RocketMQ's table of queue offsets.
NextOffset(q) == ends[q] + Cardinality({p \in RecordsIn(cell, dispatched, wrote) : cell[p].q = q})

\* Where the record of the last unit of q ends; a Fill unit claims a record that ends after every other.
MaxPhysical(q) ==
    IF ends[q] = 0 THEN 0
    ELSE LET u == unit[q][ends[q] - 1]
         IN  IF u = Zero THEN 0 ELSE IF u = Fill THEN LogSize ELSE u + 1

BehindEveryUnit == CHOOSE n \in {first} \cup {MaxPhysical(q) : q \in Queue} :
                      n >= first /\ \A q \in Queue : n >= MaxPhysical(q)
AllDispatched == RecordsIn(cell, dispatched, wrote) = {}
LogTailDurable == \A p \in Position : p >= wrote => disk[p] = cell[p]
QueueTailDurable(q) == \A i \in UnitNumber : i >= ends[q] => unitDisk[q][i] = unit[q][i]

\* What a model bounds by definitions of its own: how much is sent, how often something fails, where files end early.
MaySend == TRUE
MayFail == TRUE
RollsAt(p) == p # FileStart(p)

Init ==
    /\ mode = "down"
    /\ cell = Nothing /\ disk = Nothing /\ first = 0
    /\ wrote = 0 /\ flushed = 0
    /\ unit = NoUnits /\ unitDisk = NoUnits /\ queueFiles = [q \in Queue |-> 0]
    /\ ends = [q \in Queue |-> 0]
    /\ dispatched = 0
    /\ index = {} /\ indexDisk = {}
    /\ ckpt = NoStamps
    /\ abort = FALSE /\ clean = TRUE
    /\ valid = 0 /\ cut = {}
    /\ sent = 0 /\ waiting = {} /\ promised = {} /\ gone = {} /\ seen = {}
    /\ goal = 0 /\ faults = 0

------------------------------------------------------------------------------
(* The running store *)

\* The broker, for a producer: writes the next message of queue q at the end of the log. There must be room for it and
\* for the blank record that closes the file.                                                       append_message
AppendMessage(q) ==
    /\ mode = "serving"
    /\ MaySend
    /\ wrote < LogSize
    /\ ~LastOfFile(wrote)
    /\ cell' = [cell EXCEPT ![wrote] = [m |-> sent + 1, q |-> q, o |-> NextOffset(q)]]
    /\ wrote' = wrote + 1
    /\ sent' = sent + 1
    /\ waiting' = waiting \cup {sent + 1}
    /\ UNCHANGED <<mode, disk, first, flushed, queueVars, ends, dispatched, indexVars, ckpt, abort, clean, valid, cut,
                   promised, gone, seen, goal, faults>>

\* The broker, when the next record does not fit into a file that holds something: closes the file with a blank record.
\* The last position of a file is kept for it; a large record may not fit before that.                    roll_file
RollFile ==
    /\ mode = "serving"
    /\ RollsAt(wrote)
    /\ cell' = [cell EXCEPT ![wrote] = Blank]
    /\ wrote' = FileEnd(wrote)
    /\ UNCHANGED <<mode, disk, first, flushed, queueVars, ends, dispatched, indexVars, ckpt, abort, clean, valid, cut,
                   clientVars, waiting, goal, faults>>

\* The flush thread, at any time: makes the file that holds the flushed position durable, the whole file, and moves
\* the position to its end or to the end of the log. Recovery flushes what it found and what it cut in the same way.
\*                                                                                                         flush_log
FlushLog ==
    /\ mode \in {"serving", "cut"}
    /\ flushed < wrote \/ ~LogTailDurable
    /\ disk' = [p \in Position |-> IF FileStart(p) = FileStart(flushed) THEN cell[p] ELSE disk[p]]
    /\ flushed' = Least(wrote, FileEnd(flushed))
    /\ UNCHANGED <<mode, cell, first, wrote, queueVars, ends, dispatched, indexVars, ckpt, abort, clean, valid, cut,
                   clientVars, waiting, goal, faults>>

\* The broker: tells a producer that its message, whose record is at p, is stored; with sync flush not before it is
\* durable.                                                                                                  ack_put
AckPut(p) ==
    /\ p \in RecordsIn(cell, first, wrote)
    /\ cell[p].m \in waiting
    /\ SyncFlush => p < flushed
    /\ waiting' = waiting \ {cell[p].m}
    /\ promised' = promised \cup {cell[p].m}
    /\ UNCHANGED <<mode, logVars, wrote, flushed, queueVars, ends, dispatched, indexVars, ckpt, abort, clean, valid,
                   cut, sent, gone, seen, goal, faults>>

\* The record that is dispatched next, whether its queue has its unit already, and where the unit goes.
NextRecord == LET Found(p) == HasRecord(cell, p) IN FirstThat(Found, dispatched, wrote)
Built(p, r) ==
    IF PlaceByNumber
    THEN r.o < ends[r.q] /\ unit[r.q][r.o] = p
    ELSE p < MaxPhysical(r.q) \/ (r.o # 0 /\ r.o < ends[r.q])
PlaceOf(r) == IF PlaceByNumber \/ (ends[r.q] = 0 /\ queueFiles[r.q] = 0) THEN r.o ELSE ends[r.q]

\* The dispatch thread, and recovery for what a queue may have lost: gives the next record its unit and its index
\* entry. RocketMQ: a unit that is there already, by its position or by its number, is not written again; a number
\* that is too large for the queue is written at its end all the same; only the first unit of a queue that does not
\* begin at 0 is written in its place, with Fill units before it. Repaired: every unit is written in its place. The
\* index skips what lies before its last entry.                                                     dispatch_message
DispatchMessage ==
    /\ mode \in {"serving", "cut"}
    /\ ~AllDispatched
    /\ DispatchBehindFlush /\ SyncFlush => RecordsIn(cell, dispatched, flushed) # {}
    /\ ZeroTailOnTruncate /\ mode = "cut" => \A q \in Queue : QueueTailDurable(q)
    /\ \E p \in {NextRecord} : \E r \in {cell[p]} :
           /\ IF Built(p, r)
              THEN UNCHANGED <<unit, ends, queueFiles>>
              ELSE \E at \in {PlaceOf(r)} :
                      /\ unit' = [unit EXCEPT ![r.q] = [i \in UnitNumber |->
                                     IF i = at THEN p ELSE IF ends[r.q] <= i /\ i < at THEN Fill ELSE @[i]]]
                      /\ ends' = [ends EXCEPT ![r.q] = at + 1]
                      /\ queueFiles' = [queueFiles EXCEPT ![r.q] = (at \div QueueFileSize) + 1]
           /\ index' = IF \E e \in index : e[1] > p THEN index ELSE index \cup {<<p, r.m>>}
           /\ dispatched' = p + 1
    /\ UNCHANGED <<mode, logVars, wrote, flushed, unitDisk, indexDisk, ckpt, abort, clean, valid, cut, clientVars,
                   waiting, goal, faults>>

\* The queue flush thread, and recovery after it cut: makes the units of q durable.                      flush_queue
FlushQueue(q) ==
    /\ mode \in {"serving", "cut"}
    /\ unitDisk[q] # unit[q]
    /\ unitDisk' = [unitDisk EXCEPT ![q] = unit[q]]
    /\ UNCHANGED <<mode, logVars, wrote, flushed, unit, queueFiles, ends, dispatched, indexVars, ckpt, abort, clean,
                   valid, cut, clientVars, waiting, goal, faults>>

\* The index's background thread: makes its entries durable.                                             flush_index
FlushIndex ==
    /\ mode = "serving"
    /\ indexDisk # index
    /\ indexDisk' = index
    /\ UNCHANGED <<mode, logVars, wrote, flushed, queueVars, ends, dispatched, index, ckpt, abort, clean, valid, cut,
                   clientVars, waiting, goal, faults>>

\* What the checkpoint would say now. RocketMQ advances the queue stamp when a unit is written; whoever writes the
\* checkpoint next, for instance the index thread, makes that claim durable.
Stamps == [log   |-> flushed,
           queue |-> IF CheckpointBehindData THEN DurablyQueued ELSE dispatched,
           index |-> DurablyIndexed]

\* The queue flush thread or the index thread, now and then: writes the three stamps.               write_checkpoint
WriteCheckpoint ==
    /\ mode = "serving"
    /\ ckpt # Stamps
    /\ ckpt' = Stamps
    /\ UNCHANGED <<mode, logVars, wrote, flushed, queueVars, ends, dispatched, indexVars, abort, clean, valid, cut,
                   clientVars, waiting, goal, faults>>

\* The broker, for a consumer that asks for offset i of q: gives it the bytes at the unit's position, whatever they
\* are (message 0 stands for bytes that are not a record).                                             serve_message
ServeMessage(q, i) ==
    /\ mode = "serving"
    /\ i < ends[q]
    /\ IsPosition(unit[q][i]) => unit[q][i] >= first
    /\ unit[q][i] # Fill
    /\ LET p == IF unit[q][i] = Zero THEN 0 ELSE unit[q][i]
           got == [q |-> q, o |-> i, p |-> p, m |-> IF IsRecord(cell[p]) THEN cell[p].m ELSE 0]
       IN  got \notin seen /\ seen' = seen \cup {got}
    /\ UNCHANGED <<mode, logVars, wrote, flushed, queueVars, ends, dispatched, indexVars, ckpt, abort, clean, valid,
                   cut, sent, promised, gone, waiting, goal, faults>>

\* The cleaner, when a file is old or the disk is full: removes the oldest file if it is dispatched and durable, never
\* the last one.                                                                                         expire_file
ExpireFile ==
    /\ mode = "serving"
    /\ first + FileSize <= Least(wrote, Least(flushed, dispatched))
    /\ first' = first + FileSize
    /\ cell' = [p \in Position |-> IF p < first + FileSize THEN Zero ELSE cell[p]]
    /\ disk' = [p \in Position |-> IF p < first + FileSize THEN Zero ELSE disk[p]]
    /\ gone' = gone \cup MessagesIn(cell, first, first + FileSize)
    /\ waiting' = waiting \ MessagesIn(cell, first, first + FileSize)
    /\ UNCHANGED <<mode, wrote, flushed, queueVars, ends, dispatched, indexVars, ckpt, abort, clean, valid, cut,
                   sent, promised, seen, goal, faults>>

\* What a process that ends takes with it.
ForgetMemory ==
    /\ mode' = "down"
    /\ wrote' = 0 /\ flushed' = 0 /\ dispatched' = 0
    /\ ends' = [q \in Queue |-> 0]
    /\ valid' = 0 /\ cut' = {}
    /\ waiting' = {}

\* The operator stops the store: nothing new is accepted, everything is dispatched and made durable, the abort file
\* goes last.                                                                                             stop_store
StopStore ==
    /\ mode = "serving"
    /\ AllDispatched
    /\ disk' = cell
    /\ unitDisk' = unit
    /\ indexDisk' = IF FlushIndexAtStop THEN index ELSE indexDisk
    /\ ckpt' = [log |-> wrote, queue |-> dispatched, index |-> IF FlushIndexAtStop THEN dispatched ELSE DurablyIndexed]
    /\ abort' = FALSE
    /\ goal' = wrote
    /\ ForgetMemory
    /\ UNCHANGED <<cell, first, unit, queueFiles, index, clean, clientVars, faults>>

------------------------------------------------------------------------------
(* The start *)

\* The operator starts the store: it takes the lock and looks for the abort file. Repaired: it creates the file
\* before it changes anything.                                                                           start_store
StartStore ==
    /\ mode = "down"
    /\ mode' = "started"
    /\ clean' = ~abort
    /\ abort' = (abort \/ AbortBeforeRecovery)
    /\ UNCHANGED <<logVars, wrote, flushed, queueVars, ends, dispatched, indexVars, ckpt, valid, cut, clientVars,
                   waiting, goal, faults>>

\* The file in which a scan begins. After a clean stop: the third from the end. After anything else: the newest file
\* whose first record is not newer than the checkpoint; the oldest file if there is none.
Trusted == IF IndexInScan THEN Least(ckpt.index, Least(ckpt.log, ckpt.queue)) ELSE Least(ckpt.log, ckpt.queue)
ScanStart ==
    LET Used(p) == cell[p] # Zero
        Old(p)  == p = FileStart(p) /\ p < Trusted /\ IsRecord(cell[p])
        last    == FileStart(LastThat(Used, first, LogSize - 1))
    IN  IF clean
        THEN IF last >= first + 2 * FileSize THEN last - 2 * FileSize ELSE first
        ELSE LastThat(Old, first, LogSize - 1)

\* Recovery: reads the log from the chosen file on and finds its end. After an abnormal exit the index entries that
\* are newer than the checkpoint are dropped.                                                               scan_log
ScanLog ==
    /\ mode = "started"
    /\ mode' = "scanned"
    /\ \E start \in {ScanStart} : \E end \in {ValidEnd(cell, start)} :
          /\ valid' = end
          /\ dispatched' = start
          /\ index' = {e \in index : (clean \/ e[1] < ckpt.index) /\ (CutIndex => e[1] < end)}
    /\ indexDisk' = index'
    /\ UNCHANGED <<logVars, wrote, flushed, queueVars, ends, ckpt, abort, clean, cut, clientVars, waiting, goal,
                   faults>>

\* How many units of q recovery keeps: those before the first empty one that point before the valid end. RocketMQ
\* trusts the first unit of the last file without looking, so an empty last file counts as one unit.
KeptUnits(q) ==
    LET Empty(i)  == unit[q][i] = Zero
        Bad(i)    == IF unit[q][i] = Fill THEN FALSE ELSE unit[q][i] = Zero \/ unit[q][i] >= valid
        Named(i)  == /\ i > 0 /\ IsPosition(unit[q][i - 1])
                     /\ \A j \in 0..(i - 1) : ~Bad(j)
        lastFile  == (queueFiles[q] - 1) * QueueFileSize
        phantom   == /\ ~ValidateFirstUnit /\ queueFiles[q] > 0 /\ valid > 0
                     /\ FirstThat(Empty, 0, LogSize) <= lastFile
    IN  IF phantom THEN lastFile + 1
        ELSE IF IgnoreFillUnits THEN LastThat(Named, 0, LogSize)
        ELSE FirstThat(Bad, 0, LogSize)

\* Recovery, for each queue: cuts the units that point past the valid end. Files past the cut are removed; what
\* is left in the last file stays, or is overwritten with zeros.                                      truncate_queue
TruncateQueue(q) ==
    /\ mode = "scanned"
    /\ q \notin cut
    /\ \E keep \in {KeptUnits(q)} : \E files \in {(keep + QueueFileSize - 1) \div QueueFileSize} :
           /\ unit' = [unit EXCEPT ![q] = [i \in UnitNumber |->
                          IF i >= files * QueueFileSize \/ (ZeroTailOnTruncate /\ i >= keep) THEN Zero ELSE @[i]]]
           /\ unitDisk' = [unitDisk EXCEPT ![q] = [i \in UnitNumber |->
                              IF i >= files * QueueFileSize THEN Zero ELSE @[i]]]
           /\ queueFiles' = [queueFiles EXCEPT ![q] = files]
           /\ ends' = [ends EXCEPT ![q] = keep]
    /\ cut' = cut \cup {q}
    /\ UNCHANGED <<mode, logVars, wrote, flushed, dispatched, indexVars, ckpt, abort, clean, valid, clientVars,
                   waiting, goal, faults>>

\* Recovery, when every queue is cut: cuts the log at its valid end in the same way. After a clean stop dispatch goes
\* on after the last unit of any queue, otherwise it begins again where the scan began. RocketMQ counts what it found
\* as flushed.                                                                                          truncate_log
TruncateLog ==
    /\ mode = "scanned"
    /\ cut = Queue
    /\ mode' = "cut"
    /\ cell' = [p \in Position |-> IF p >= FileEnd(valid) \/ (ZeroTailOnTruncate /\ p >= valid) THEN Zero ELSE cell[p]]
    /\ disk' = [p \in Position |-> IF p >= FileEnd(valid) THEN Zero ELSE disk[p]]
    /\ wrote' = valid
    /\ flushed' = IF FlushOnRecovery THEN first ELSE valid
    /\ dispatched' = IF clean THEN BehindEveryUnit ELSE dispatched
    /\ UNCHANGED <<first, queueVars, ends, indexVars, ckpt, abort, clean, valid, cut, clientVars, waiting, goal,
                   faults>>

\* Recovery, when every record is dispatched (and, repaired, everything that it relies on is durable): the store
\* accepts and serves messages. RocketMQ creates the abort file now.                                 finish_recovery
FinishRecovery ==
    /\ mode = "cut"
    /\ AllDispatched
    /\ FlushOnRecovery => flushed = wrote
    /\ ZeroTailOnTruncate => LogTailDurable /\ \A q \in Queue : QueueTailDurable(q)
    /\ mode' = "serving"
    /\ abort' = TRUE
    /\ clean' = FALSE
    /\ valid' = 0 /\ cut' = {} /\ goal' = 0
    /\ UNCHANGED <<logVars, wrote, flushed, queueVars, ends, dispatched, indexVars, ckpt, clientVars, waiting, faults>>

------------------------------------------------------------------------------
(* The world *)

\* The log after something went wrong with it: a position that was not durable holds what was written, what was
\* durable before, or a torn record.
LogDirty == {p \in Position : disk[p] # cell[p]}
Losses == [LogDirty -> {"kept", "lost", "torn"}]
AfterLoss(loss) ==
    [p \in Position |->
        IF p \notin LogDirty THEN cell[p]
        ELSE CASE loss[p] = "kept" -> cell[p]
               [] loss[p] = "lost" -> disk[p]
               [] loss[p] = "torn" -> IF IsRecord(cell[p]) THEN Torn ELSE disk[p]]

\* The units that were not durable and are lost.
UnitsDirty == {<<q, i>> \in Queue \X UnitNumber : unit[q][i] # unitDisk[q][i]}
UnitLosses == SUBSET UnitsDirty

\* The entries of the index that were not durable and are lost.
EntriesDirty == index \ indexDisk
EntryLosses == SUBSET EntriesDirty

\* What is still promised after such a loss: with sync flush everything, with async flush what was durable.
StillPromised == IF SyncFlush THEN promised ELSE promised \cap (gone \cup MessagesIn(cell, first, DurableEnd))

\* A checkpoint that is being written when the crash comes: each stamp is the old one or the new one.
StampsLeft == IF Serving
              THEN [log : {ckpt.log, Stamps.log}, queue : {ckpt.queue, Stamps.queue}, index : {ckpt.index, Stamps.index}]
              ELSE {ckpt}

\* The process dies. Everything written survives; half of a record that was being written may be there.
ProcessCrash ==
    /\ MayFail
    /\ mode # "down"
    /\ \E half \in BOOLEAN :
          /\ half => mode = "serving" /\ wrote < LogSize /\ ~LastOfFile(wrote)
          /\ cell' = IF half THEN [cell EXCEPT ![wrote] = Torn] ELSE cell
          /\ goal' = IF mode = "serving" THEN ValidEnd(cell', first) ELSE goal
    /\ ckpt' \in StampsLeft
    /\ ForgetMemory
    /\ faults' = faults + 1
    /\ UNCHANGED <<disk, first, queueVars, indexVars, abort, clean, clientVars>>

\* The power fails, in whatever state the store is: any subset of what was not durable is lost.
PowerLoss ==
    /\ MayFail
    /\ mode # "down" \/ LogDirty # {} \/ unit # unitDisk \/ index # indexDisk
    /\ \E loss \in Losses :
          /\ cell' = AfterLoss(loss)
          /\ disk' = cell'
          /\ goal' = ValidEnd(cell', first)
    /\ \E lost \in UnitLosses :
          /\ unit' = [q \in Queue |-> [i \in UnitNumber |-> IF <<q, i>> \in lost THEN unitDisk[q][i] ELSE unit[q][i]]]
          /\ unitDisk' = unit'
    /\ \E lost \in EntryLosses :
          /\ index' = index \ lost
          /\ indexDisk' = index'
    /\ ckpt' \in StampsLeft
    /\ promised' = StillPromised
    /\ ForgetMemory
    /\ faults' = faults + 1
    /\ UNCHANGED <<first, queueFiles, abort, clean, sent, gone, seen>>

\* The disk refuses a flush of the log. RocketMQ logs the error and moves the flushed position on.
\* Repaired: the store stops; nobody knows which of the pages are on the disk.
FailFlush ==
    /\ MayFail
    /\ mode = "serving"
    /\ flushed < wrote
    /\ IF FsyncFailureStops
       THEN /\ \E loss \in Losses :
                  /\ cell' = AfterLoss(loss)
                  /\ disk' = cell'
                  /\ goal' = ValidEnd(cell', first)
            /\ promised' = StillPromised
            /\ ForgetMemory
       ELSE /\ flushed' = Least(wrote, FileEnd(flushed))
            /\ UNCHANGED <<mode, cell, disk, wrote, ends, dispatched, valid, cut, waiting, promised, goal>>
    /\ faults' = faults + 1
    /\ UNCHANGED <<first, queueVars, indexVars, ckpt, abort, clean, sent, gone, seen>>

\* An operator removes the queues of a store that was stopped cleanly, and the checkpoint with them, to have them
\* rebuilt.
RemoveQueues ==
    /\ MayFail
    /\ mode = "down"
    /\ ~abort
    /\ \E q \in Queue : queueFiles[q] > 0
    /\ unit' = NoUnits
    /\ unitDisk' = NoUnits
    /\ queueFiles' = [q \in Queue |-> 0]
    /\ ckpt' = NoStamps
    /\ faults' = faults + 1
    /\ UNCHANGED <<mode, logVars, wrote, flushed, ends, dispatched, indexVars, abort, clean, valid, cut, clientVars,
                   waiting, goal>>

------------------------------------------------------------------------------
Running ==
    \/ \E q \in Queue : AppendMessage(q)
    \/ RollFile
    \/ FlushLog
    \/ \E p \in Position : AckPut(p)
    \/ DispatchMessage
    \/ \E q \in Queue : FlushQueue(q)
    \/ FlushIndex
    \/ WriteCheckpoint
    \/ \E q \in Queue, i \in UnitNumber : ServeMessage(q, i)
    \/ ExpireFile
    \/ StopStore

Starting ==
    \/ StartStore
    \/ ScanLog
    \/ \E q \in Queue : TruncateQueue(q)
    \/ TruncateLog
    \/ FinishRecovery

World ==
    \/ ProcessCrash
    \/ PowerLoss
    \/ FailFlush
    \/ RemoveQueues

Next == Running \/ Starting \/ World

Spec == Init /\ [][Next]_vars

\* What has to go on for a recovery to finish: the start itself, and the work it waits for.
RecoveryFairness ==
    /\ WF_vars(StartStore)
    /\ WF_vars(ScanLog)
    /\ WF_vars(TruncateLog)
    /\ WF_vars(FinishRecovery)
    /\ WF_vars(FlushLog)
    /\ WF_vars(DispatchMessage)
    /\ \A q \in Queue : WF_vars(TruncateQueue(q)) /\ WF_vars(FlushQueue(q))

FairSpec == Spec /\ RecoveryFairness

------------------------------------------------------------------------------
(* The promises *)

\* What was acknowledged is there, or its file was removed. `promised` says which faults the flush mode covers.
AckedSurvives == Serving => promised \subseteq gone \cup MessagesIn(cell, first, wrote)

\* A promise is taken back only with async flush, and only if the record or one before it was not durable.
PromisesStand ==
    [][\A q \in Position :
          IF IsRecord(cell[q]) /\ (SyncFlush \/ \A p \in first..q : disk[p] = cell[p])
          THEN cell[q].m \in promised => cell[q].m \in promised'
          ELSE TRUE]_vars

\* Nothing is served that was not sent, and nothing is stored twice.
NoInvention ==
    /\ \A got \in seen : got.m \in 1..sent
    /\ Serving => \A p, r \in RecordsIn(cell, first, wrote) : cell[p].m = cell[r].m => p = r

\* Every unit names the record that it claims to name, and every dispatched record has its unit.
QueueMatchesLog ==
    Serving =>
        /\ \A q \in Queue : \A i \in 0..(ends[q] - 1) :
              LET u == unit[q][i]
              IN  /\ u # Zero
                  /\ IsPosition(u) /\ (IF IsPosition(u) THEN u >= first ELSE FALSE) =>
                        u < wrote /\ IsRecord(cell[u]) /\ cell[u].q = q /\ cell[u].o = i
        /\ \A p \in RecordsIn(cell, first, dispatched) :
              cell[p].o < ends[cell[p].q] /\ unit[cell[p].q][cell[p].o] = p

\* A query by key finds every dispatched message that is still there.
IndexFindsEveryKey == Serving => \A p \in RecordsIn(cell, first, dispatched) : <<p, cell[p].m>> \in index

\* However often a recovery is interrupted, it ends where the log ended when it crashed.
RecoveryIdempotent == mode \in {"scanned", "cut"} => valid = goal

\* With sync flush, what a consumer has seen is durable (or its file was removed).
NeverServeUnflushed ==
    SyncFlush => \A got \in seen : got.m \in gone \/ (IF IsRecord(disk[got.p]) THEN disk[got.p].m = got.m ELSE FALSE)

\* The log has no hole: what was removed is what is oldest.
RetentionPrefix ==
    /\ first = FileStart(first)
    /\ Serving => /\ \A p \in first..(wrote - 1) : IsRecord(cell[p]) \/ cell[p] = Blank \/ BehindBlank(cell, p)
                  /\ \A m \in gone : \A n \in MessagesIn(cell, first, wrote) : m < n

\* Whatever the checkpoint says is durable is durable: recovery may begin its work after it.
CheckpointMonotone ==
    Serving => \A p \in RecordsIn(cell, first, wrote) :
                  p < ckpt.log /\ p < ckpt.queue => disk[p] = cell[p] /\ unitDisk[cell[p].q][cell[p].o] = p

\* A store that starts and meets no further fault ends up serving.
RecoveryFinishes == mode = "started" ~> mode = "serving"

TypeOK ==
    /\ mode \in {"down", "started", "scanned", "cut", "serving"}
    /\ first \in 0..LogSize /\ wrote \in 0..LogSize /\ flushed \in 0..LogSize /\ dispatched \in 0..LogSize
    /\ cut \subseteq Queue /\ waiting \subseteq 1..sent /\ promised \subseteq 1..sent /\ gone \subseteq 1..sent
    /\ \A q \in Queue : ends[q] \in 0..LogSize
    /\ flushed <= LogSize /\ abort \in BOOLEAN /\ clean \in BOOLEAN

------------------------------------------------------------------------------
\* What a client can know of all this.
Stored == IF Serving THEN MessagesIn(cell, first, wrote) ELSE MessagesIn(cell, first, ValidEnd(cell, first))
Client == INSTANCE StoreRecoveryAbstract WITH
    sent <- sent, promised <- promised, gone <- gone, stored <- Stored, up <- Serving,
    seen <- {[q |-> got.q, o |-> got.o, m |-> got.m] : got \in seen}
RefinesAbstract == Client!Spec
==============================================================================
