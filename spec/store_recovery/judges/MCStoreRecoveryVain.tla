------------------------- MODULE MCStoreRecoveryVain -------------------------
\* No step is taken in vain. A guard against steps that change nothing is invisible to every other promise.
EXTENDS MCStoreRecovery

NoStepInVain ==
    /\ \A q \in Queue : ENABLED FlushQueue(q) => unitDisk[q] # unit[q]
    /\ \A q \in Queue : ENABLED TruncateQueue(q) => q \notin cut
    /\ ENABLED FailFlush => mode = "serving" /\ flushed < wrote
    /\ ENABLED RemoveQueues => mode = "down" /\ ~abort /\ \E q \in Queue : queueFiles[q] > 0
    /\ ENABLED FlushIndex => indexDisk # index
    /\ ENABLED WriteCheckpoint => \E field \in {"log", "queue", "index"} : ckpt[field] # Stamps[field]
    /\ \A q \in Queue, i \in UnitNumber : ENABLED ServeMessage(q, i) => \A got \in seen : got.q # q \/ got.o # i \/ got.p # unit[q][i]
==============================================================================
