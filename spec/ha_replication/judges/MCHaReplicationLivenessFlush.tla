--------------------- MODULE MCHaReplicationLivenessFlush ---------------------
(* What the flush threads are for, in the end. *)
EXTENDS MCHaReplication

FlushedInTheEnd == <>[](\A n \in Node : flushed[n] = End(n) /\ durable[n] = End(n))
==============================================================================
