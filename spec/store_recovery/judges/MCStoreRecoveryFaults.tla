------------------------ MODULE MCStoreRecoveryFaults ------------------------
\* Double entry, second part: what the faults may take, and what recovery may cut.
EXTENDS MCStoreRecovery

FileOf(p) == p \div FileSize
Faulty == faults' = faults + 1

CutsHaveCauses == [][
    /\ mode = "scanned" /\ mode' = "scanned" => \A q \in cut' \ cut :
        LET room == queueFiles'[q] * QueueFileSize
        IN  /\ ends'[q] <= room /\ room < ends'[q] + QueueFileSize
            /\ \A i \in UnitNumber :
                /\ unitDisk'[q][i] = IF i < room THEN unitDisk[q][i] ELSE Zero
                /\ unit'[q][i] = IF i < ends'[q] \/ (i < room /\ ~ZeroTailOnTruncate) THEN unit[q][i] ELSE Zero
    /\ mode = "scanned" /\ mode' = "cut" =>
        /\ \A p \in Position : disk'[p] = IF FileOf(p) > FileOf(valid) THEN Zero ELSE disk[p]
        /\ \A p \in Position : cell'[p] = IF FileOf(p) > FileOf(valid) \/ (ZeroTailOnTruncate /\ p >= valid) THEN Zero ELSE cell[p]
        /\ ~clean => dispatched' = dispatched
        /\ clean => /\ first <= dispatched'
                    /\ \A q \in Queue : ends[q] > 0 =>
                        LET u == unit[q][ends[q] - 1]
                        IN  IF u \in {Zero, Fill} THEN TRUE ELSE dispatched' > u
                    /\ dispatched' = first \/ \E q \in Queue : ends[q] > 0 /\ (IF ends[q] > 0 THEN unit[q][ends[q] - 1] \in {Fill, dispatched' - 1} ELSE FALSE)
    ]_vars

FaultsHaveCauses == [][Faulty =>
    /\ UNCHANGED <<first, sent, gone, seen, abort, clean>>
    /\ \A p \in Position : cell'[p] \in {cell[p], disk[p], Torn}
    /\ \A p \in Position : disk'[p] \in {disk[p], cell'[p]}
    /\ disk' # cell' /\ cell' # cell => \* half a record was written
        /\ mode = "serving" /\ wrote % FileSize # FileSize - 1
        /\ \A p \in Position : cell'[p] = IF p = wrote THEN Torn ELSE cell[p]
    /\ \A p \in Position : disk[p] = cell[p] /\ cell'[p] # cell[p] => p = wrote /\ mode = "serving" /\ disk' = disk
    /\ \A p \in Position : cell'[p] = Torn /\ cell[p] # Torn => (cell[p] \notin {Zero, Blank} \/ p = wrote \/ disk[p] = Torn)
    /\ queueFiles' # queueFiles => mode = "down" /\ ~abort /\ \A q \in Queue : queueFiles'[q] = 0
    /\ queueFiles' = queueFiles => \A q \in Queue, i \in UnitNumber : unit'[q][i] \in {unit[q][i], unitDisk[q][i]}
    /\ unitDisk' # unitDisk \/ unit' # unit => unitDisk' = unit'
    /\ index' \subseteq index /\ indexDisk \subseteq index'
    /\ indexDisk' # indexDisk \/ index' # index => indexDisk' = index'
    /\ mode = "down" /\ queueFiles' = queueFiles => <<disk, unitDisk, indexDisk>> # <<cell, unit, index>>
    /\ queueFiles' # queueFiles => ckpt'.log = 0 /\ ckpt'.queue = 0 /\ ckpt'.index = 0
    /\ mode # "serving" /\ queueFiles' = queueFiles => ckpt' = ckpt
    /\ mode = "serving" => \A p \in Position : p < ckpt'.log => p < ckpt.log \/ p < flushed
    /\ goal' # goal => mode' = "down"
    /\ ~SyncFlush => \A m \in promised \ promised' : disk' = cell'
    ]_vars
==============================================================================
