----------------------- MODULE MCStoreRecoverySmallStop -----------------------
\* Where a start looks after a clean stop.
EXTENDS MCStoreRecovery

\* The last three files that hold something; all of them, if there are fewer.
ScansThreeFiles ==
    mode = "scanned" /\ clean =>
        LET files == (valid + FileSize - 1) \div FileSize
        IN  dispatched = IF files * FileSize > first + 3 * FileSize THEN (files - 3) * FileSize ELSE first
==============================================================================
