-------------------------- MODULE SIMStoreRecovery --------------------------
\* StoreRecovery for long random walks: more queues, more files, many crashes. What a power loss takes is drawn at
\* random instead of tried in every combination.
EXTENDS StoreRecovery, TLC

SomeLoss == {[p \in LogDirty |-> RandomElement({"kept", "lost", "torn"})]}
SomeUnitLoss == {{u \in UnitsDirty : RandomElement(BOOLEAN)}}
SomeEntryLoss == {{e \in EntriesDirty : RandomElement(BOOLEAN)}}
=============================================================================
