--------------------- MODULE MCStoreRecoverySmallRefused ---------------------
\* A disk that refuses every flush, RocketMQ that counts them, and a power loss that takes everything.
EXTENDS MCStoreRecovery

AllLost == {[p \in LogDirty |-> "lost"]}
==============================================================================
