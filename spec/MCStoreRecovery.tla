-------------------------- MODULE MCStoreRecovery --------------------------
\* StoreRecovery with bounds: so many messages and so many faults. States at the bounds are checked, not followed.
\* A configuration can leave out what its question does not need.
EXTENDS StoreRecovery, TLC

CONSTANTS MaxSent, MaxFaults,
          Leave  \* of "checkpoint", "index" (its flush), "read", "remove", "stop", "expire", "power", "large" (records)

Bounded == sent <= MaxSent /\ faults <= MaxFaults

Alike == Permutations(Queue)

GoesOn == mode = "serving" /\ mode' = "serving"
Focused ==
    /\ "checkpoint" \in Leave /\ GoesOn => ckpt' = ckpt
    /\ "index" \in Leave /\ GoesOn => indexDisk' = indexDisk
    /\ "read" \in Leave => seen' = seen
    /\ "remove" \in Leave /\ mode = "down" => queueFiles' = queueFiles
    /\ "stop" \in Leave /\ mode = "serving" => abort'
    /\ "expire" \in Leave => first' = first
    /\ "large" \in Leave /\ mode = "serving" /\ wrote' > wrote => wrote' = wrote + 1
    /\ "power" \in Leave /\ faults' > faults => disk' = disk /\ flushed' = 0 /\ UNCHANGED <<unit, unitDisk, index>>
=============================================================================
