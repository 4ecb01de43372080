---------------------- MODULE MCTransactionCheckBackWay ----------------------
(***************************************************************************)
(* When exactly a committed message is there twice: nobody is asked before *)
(* the decision has been taken and its op message written, by a round that *)
(* begins after that. What is left are the ways that need something else.  *)
(***************************************************************************)
EXTENDS MCTransactionCheckBack

OverWhenTaken(t) ==
    /\ t \in young
    /\ decision[t] # "none"
    /\ endNet = {} /\ pendingOps = {} /\ ~round.on
    /\ young' = young \ {t}
    /\ UNCHANGED <<brokerVars, producerVars, netVars, happened>>
==============================================================================
