--------------------- MODULE MCHaReplicationLivenessFlush ---------------------
(* What the flush threads achieve in the end.  *)
EXTENDS MCHaReplication

FlushedInTheEnd == <>[](\A n \in Node : flushed[n] = End(n) /\ durable[n] = End(n))
==============================================================================
