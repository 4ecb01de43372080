----------------------- MODULE SIMTransactionCheckBack -----------------------
(* TransactionCheckBack with larger bounds, for long random walks. *)
EXTENDS MCTransactionCheckBack
CONSTANT t3
==============================================================================
