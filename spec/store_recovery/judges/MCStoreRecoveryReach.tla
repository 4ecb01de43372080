------------------------ MODULE MCStoreRecoveryReach ------------------------
\* What a crash has to be able to do, as promises that TLC must find broken: a model in which nothing is ever torn, or a
\* checkpoint is always written whole, would keep the other promises too easily.
EXTENDS MCStoreRecovery

NothingTorn == \A p \in Position : cell[p] # Torn
CheckpointWhole == [][faults' # faults => ckpt' \in {ckpt, Stamps}]_vars
=============================================================================
