---- MODULE SIMHaReplication ----
(* HaReplication with larger bounds, for long random walks. *)
EXTENDS HaReplicationPromises
====
