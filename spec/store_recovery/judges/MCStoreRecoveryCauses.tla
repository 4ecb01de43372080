------------------------ MODULE MCStoreRecoveryCauses ------------------------
\* Double entry for StoreRecovery: whatever changes, changes for a reason recorded elsewhere in the state. These
\* properties say nothing new about the store; they are here so that no guard of an action can be lost unnoticed. They
\* share no definition with the actions.
EXTENDS MCStoreRecovery

Faulty == faults' = faults + 1
FileOf(p) == p \div FileSize
Old(p) == p < first

\* A position whose content counts: no blank record is before it in its file.
Counts(log, p) == \A b \in Position : b < p /\ FileOf(b) = FileOf(p) => log[b] # Blank
Record(log, p) == log[p] \notin {Zero, Blank, Torn} /\ Counts(log, p)
Undispatched(p) == dispatched <= p /\ p < wrote /\ Record(cell, p)
TailKnown == \A p \in Position : wrote <= p => disk[p] = cell[p]

\* The start is a line of steps; each may change its own things only. A fault may fall between any two.
StartHasCauses == [][
    /\ faults' \in {faults, faults + 1}
    /\ Faulty => mode' \in {"down", mode}
    /\ ~Faulty /\ mode = "down" =>
        /\ mode' = "started" /\ clean' = ~abort /\ (abort' = abort \/ AbortBeforeRecovery) /\ (abort \/ AbortBeforeRecovery => abort')
        /\ UNCHANGED <<logVars, queueVars, indexVars, clientVars, ckpt, wrote, flushed, dispatched, ends, valid, cut, waiting, goal>>
    /\ ~Faulty /\ mode = "started" =>
        /\ mode' = "scanned"
        /\ index' \subseteq index /\ indexDisk' = index'
        /\ \A e \in index \ index' : (~clean /\ e[1] >= ckpt.index) \/ (CutIndex /\ e[1] >= valid')
        /\ \A e \in index' : (CutIndex => e[1] < valid') /\ (clean \/ e[1] < ckpt.index)
        /\ first <= dispatched' /\ dispatched' % FileSize = 0
        /\ ~clean /\ first < dispatched' => dispatched' < ckpt.log /\ dispatched' < ckpt.queue /\ (IndexInScan => dispatched' < ckpt.index)
        /\ UNCHANGED <<logVars, queueVars, clientVars, ckpt, abort, clean, wrote, flushed, ends, cut, waiting, goal>>
    /\ ~Faulty /\ mode = "scanned" /\ mode' = "scanned" =>
        /\ \E q \in Queue \ cut : cut' = cut \cup {q} /\ \A r \in Queue \ {q} : unit'[r] = unit[r] /\ unitDisk'[r] = unitDisk[r] /\ ends'[r] = ends[r]
        /\ UNCHANGED <<logVars, indexVars, clientVars, ckpt, abort, clean, wrote, flushed, dispatched, valid, waiting, goal>>
    /\ ~Faulty /\ mode = "scanned" /\ mode' # "scanned" =>
        /\ mode' = "cut" /\ cut = Queue /\ wrote' = valid
        /\ flushed' = IF FlushOnRecovery THEN first ELSE valid
        /\ \A p \in Position : cell'[p] = IF p >= valid /\ (ZeroTailOnTruncate \/ FileOf(p) > FileOf(valid)) THEN Zero ELSE cell[p]
        /\ dispatched' # dispatched => clean
        /\ UNCHANGED <<first, queueVars, ends, indexVars, clientVars, ckpt, abort, clean, valid, cut, waiting, goal>>
    /\ ~Faulty /\ mode = "cut" =>
        /\ mode' \in {"cut", "serving"}
        /\ UNCHANGED <<cell, first, clientVars, ckpt, wrote, waiting>>
        /\ mode' = "cut" => UNCHANGED <<abort, clean, valid, cut, goal>>
    /\ mode = "cut" /\ mode' = "serving" =>
        /\ \A p \in Position : ~Undispatched(p)
        /\ FlushOnRecovery => flushed = wrote
        /\ ZeroTailOnTruncate => TailKnown /\ \A q \in Queue : \A i \in UnitNumber : ends[q] <= i => unitDisk[q][i] = unit[q][i]
        /\ abort' /\ ~clean' /\ valid' = 0 /\ cut' = {} /\ goal' = 0
        /\ UNCHANGED <<disk, queueVars, indexVars, ends, flushed, dispatched>>
    /\ ~Faulty /\ mode = "serving" => mode' \in {"serving", "down"}
    /\ ~Faulty /\ mode = "serving" /\ mode' = "down" =>
        /\ \A p \in Position : ~Undispatched(p)
        /\ disk' = cell /\ unitDisk' = unit /\ ~abort' /\ goal' = wrote
        /\ indexDisk' = IF FlushIndexAtStop THEN index ELSE indexDisk
        /\ ckpt'.log = wrote /\ ckpt'.queue = dispatched /\ (FlushIndexAtStop => ckpt'.index = dispatched)
        /\ \A p \in Position : (IF Record(cell, p) /\ ~Old(p) /\ p < ckpt'.index THEN <<p, cell[p].m>> \in indexDisk' ELSE TRUE)
        /\ UNCHANGED <<cell, first, unit, queueFiles, index, clean, clientVars>>
    /\ mode' = "down" => wrote' = 0 /\ flushed' = 0 /\ dispatched' = 0 /\ valid' = 0 /\ cut' = {} /\ waiting' = {} /\ \A q \in Queue : ends'[q] = 0
    ]_vars

\* The running store: the log grows at its end by one record or one blank record, and shrinks by its oldest file.
LogHasCauses == [][mode = "serving" /\ mode' = "serving" =>
    /\ UNCHANGED <<abort, clean, valid, cut, goal>>
    /\ first' # first =>
        /\ first' = first + FileSize /\ first' <= wrote /\ first' <= flushed /\ first' <= dispatched
        /\ \A p \in Position : /\ cell'[p] = IF p < first' THEN Zero ELSE cell[p]
                               /\ disk'[p] = IF p < first' THEN Zero ELSE disk[p]
        /\ gone' = gone \cup {cell[p].m : p \in {x \in Position : first <= x /\ x < first' /\ Record(cell, x)}}
        /\ waiting' = waiting \ gone'
    /\ first' = first => gone' = gone
    /\ wrote' # wrote /\ sent' # sent =>
        /\ wrote' = wrote + 1 /\ wrote' % FileSize # 0 /\ sent' = sent + 1 /\ waiting' = waiting \cup {sent'}
        /\ \A p \in Position \ {wrote} : cell'[p] = cell[p]
        /\ cell'[wrote].m = sent'
        /\ cell'[wrote].o = ends[cell'[wrote].q] + Cardinality({p \in Position : Undispatched(p) /\ (IF Undispatched(p) THEN cell[p].q = cell'[wrote].q ELSE FALSE)})
    /\ wrote' # wrote /\ sent' = sent =>
        /\ wrote % FileSize # 0 /\ wrote' % FileSize = 0 /\ FileOf(wrote') = FileOf(wrote) + 1
        /\ \A p \in Position : cell'[p] = IF p = wrote THEN Blank ELSE cell[p]
    /\ sent' # sent \/ cell' # cell => wrote' # wrote \/ first' # first]_vars

\* What counts as durable is durable, and a flush had something to do.
FlushesHaveCauses == [][~Faulty /\ mode \in {"serving", "cut"} /\ mode' = mode =>
    /\ first' = first /\ <<disk, flushed>>' # <<disk, flushed>> =>
        /\ flushed < wrote \/ ~TailKnown
        /\ flushed' >= flushed /\ flushed' <= wrote /\ (flushed' = wrote \/ flushed' % FileSize = 0)
        /\ \A p \in Position : IF FileOf(p) = FileOf(flushed) THEN disk'[p] = cell[p] ELSE disk'[p] = disk[p]
    /\ unitDisk' # unitDisk => \E q \in Queue : /\ unitDisk'[q] = unit[q]
                                               /\ \A r \in Queue \ {q} : unitDisk'[r] = unitDisk[r]
    /\ indexDisk' # indexDisk => mode = "serving" /\ indexDisk' = index
    /\ ckpt' # ckpt => /\ mode = "serving"
                       /\ \A p \in Position : Record(cell, p) /\ ~Old(p) =>
                            /\ p < ckpt'.log => p < flushed
                            /\ p < ckpt'.queue => p < dispatched /\ (CheckpointBehindData => unitDisk[cell[p].q][cell[p].o] = p)
                            /\ p < ckpt'.index => p < dispatched /\ <<p, cell[p].m>> \in indexDisk]_vars

\* RocketMQ appends the unit of the record at p, whose number is o, unless the last unit names it or a later one, or the
\* queue is longer than its number, which does not count for number 0. The first unit of a queue goes to its place.
AppendedOnce(q, p, o) ==
    LET last == ends[q] - 1
        named == IF ends[q] = 0 THEN FALSE ELSE unit[q][last] = Fill \/ (unit[q][last] # Zero /\ unit[q][last] >= p)
    IN  IF named \/ (0 < o /\ o <= last) THEN unit' = unit /\ ends' = ends
        ELSE /\ ends'[q] = 1 + (IF ends[q] = 0 /\ queueFiles[q] = 0 THEN o ELSE ends[q])
             /\ unit'[q][ends'[q] - 1] = p
             /\ \A i \in UnitNumber : i < ends[q] => unit'[q][i] = unit[q][i]
             /\ \A i \in UnitNumber : ends[q] <= i /\ i < ends'[q] - 1 => unit'[q][i] = Fill

\* A record is dispatched once, in the order of the log: one unit, one entry.
UnitsHaveCauses == [][~Faulty /\ mode \in {"serving", "cut"} /\ mode' = mode =>
    /\ <<unit, ends, index, queueFiles>>' # <<unit, ends, index, queueFiles>> => dispatched' > dispatched
    /\ dispatched' # dispatched =>
        LET p == dispatched' - 1
        IN  /\ p < wrote /\ Record(cell, p) /\ \A x \in Position : Undispatched(x) => p <= x
            /\ DispatchBehindFlush /\ SyncFlush => p < flushed
            /\ ZeroTailOnTruncate /\ mode = "cut" => \A q \in Queue : \A i \in UnitNumber : ends[q] <= i => unitDisk[q][i] = unit[q][i]
            /\ \A q \in Queue \ {cell[p].q} : unit'[q] = unit[q] /\ ends'[q] = ends[q]
            /\ PlaceByNumber => /\ unit'[cell[p].q][cell[p].o] = p /\ cell[p].o < ends'[cell[p].q]
                                /\ \A i \in UnitNumber : unit'[cell[p].q][i] \in {unit[cell[p].q][i], p, Fill}
            /\ ~PlaceByNumber => AppendedOnce(cell[p].q, p, cell[p].o)
            /\ ends'[cell[p].q] <= queueFiles'[cell[p].q] * QueueFileSize
            /\ index \subseteq index' /\ index' \ index \subseteq {<<p, cell[p].m>>}
            /\ (\A e \in index : e[1] <= p) => <<p, cell[p].m>> \in index'
            /\ (\E e \in index : e[1] > p) => index' = index]_vars

\* What producers and consumers are told.
ClientsHaveCauses == [][
    /\ \A m \in promised' \ promised : /\ mode = "serving" /\ m \in waiting /\ m \notin waiting'
                                       /\ SyncFlush => \E p \in Position : p < flushed /\ (IF Record(cell, p) THEN cell[p].m = m ELSE FALSE)
    /\ \A m \in promised \ promised' : Faulty /\ ~SyncFlush
    /\ \A m \in waiting \ waiting' : m \in promised' \/ m \in gone' \/ mode' = "down"
    /\ \A m \in waiting' \ waiting : m = sent' /\ sent' = sent + 1
    /\ sent' # sent => mode = "serving" /\ wrote' # wrote
    /\ Cardinality(seen' \ seen) <= 1 /\ seen \subseteq seen'
    /\ \A got \in seen' \ seen : /\ mode = "serving" /\ got.o < ends[got.q] /\ unit[got.q][got.o] # Fill
                                 /\ unit[got.q][got.o] # Zero => unit[got.q][got.o] = got.p /\ ~Old(got.p)]_vars
==============================================================================
