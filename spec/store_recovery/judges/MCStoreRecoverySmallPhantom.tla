--------------------- MODULE MCStoreRecoverySmallPhantom ---------------------
\* A cut keeps every unit that may stay. RocketMQ's may keep one more, and only the first one of an empty last file.
EXTENDS MCStoreRecovery

Good(q, i) == IF unit[q][i] \in {Zero, Fill} THEN FALSE ELSE unit[q][i] < valid
AllGood(q, i) == \A j \in 0..i : Good(q, j)

CutsKeepWhatIsGood == [][mode = "scanned" /\ mode' = "scanned" => \A q \in cut' \ cut :
    /\ valid = 0 => ends'[q] = 0
    /\ \A i \in UnitNumber : AllGood(q, i) => i < ends'[q]
    /\ \A i \in UnitNumber : i < ends'[q] /\ ~Good(q, i) => i \div QueueFileSize = queueFiles[q] - 1 \/ \E j \in (i + 1)..(ends'[q] - 1) : j \div QueueFileSize = queueFiles[q] - 1
    ]_vars
==============================================================================
