---------------------- MODULE MCStoreRecoverySmallStale ----------------------
\* One story, for a question that needs four messages: three are in the log when the power fails, the second one is
\* torn, and recovery cuts it off but (RocketMQ) leaves the third one where it is. The file is closed before it.
EXTENDS MCStoreRecovery

ThreeThenOne == sent < (IF faults = 0 THEN 3 ELSE 4)
WithAllThree == faults = 0 /\ sent = 3
BehindTheFirst(p) == faults = 1 /\ p = 1
SecondTorn == {[p \in LogDirty |-> IF p = 1 THEN "torn" ELSE "kept"]}
NoneLost == {{}}
==============================================================================
