-------------------------- MODULE MCStoreRecovery --------------------------
\* StoreRecovery with bounds: a limited number of messages and faults. The bounds are guards and not constraints: TLC would
\* check every promise again in each state beyond a constraint. A configuration can leave out actions that its question
\* does not need, by putting Never in their place (Never1 and Never2 for those with parameters).
EXTENDS StoreRecovery, TLC

CONSTANTS MaxSent, MaxFaults

SendWithin == sent < MaxSent
FailWithin == faults < MaxFaults

\* Every record fits into the rest of its file.
AtTheEnd(p) == LastOfFile(p)

Never == FALSE
Never1(a) == FALSE
Never2(a, b) == FALSE

\* No checkpoint is being written: with WriteCheckpoint <- Never.
StampsStand == {ckpt}

Alike == Permutations(Queue)

\* While the repaired store serves, nothing past the end of a queue waits to be flushed.
TailsStay == mode = "serving" /\ ZeroTailOnTruncate => \A q \in Queue : \A i \in UnitNumber : ends[q] <= i => unitDisk[q][i] = unit[q][i]
=============================================================================
