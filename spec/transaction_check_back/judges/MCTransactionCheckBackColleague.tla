------------------- MODULE MCTransactionCheckBackColleague -------------------
(***************************************************************************)
(* Who answers for whom, written out: a promise must not share the         *)
(* mistakes of what it judges.                                             *)
(***************************************************************************)
EXTENDS MCTransactionCheckBack

\* A decision is made by a living producer of the group and is in flight then. Nobody decides about a transaction that a
\* living producer is running except that producer itself.
DecidedByItsGroup ==
    [][\A t \in Tx : decision'[t] # decision[t] =>
          /\ \E u \in Tx \ dead : Group[u] = Group[t]
          /\ \E m \in endNet' : m.tx = t
          /\ checkNet' # checkNet => known[t] = {} \/ t \in dead]_vars

\* What is expected to be violated: a colleague does answer for the dead.
NobodyAnswersForTheDead == [][\A t \in dead : decision'[t] = decision[t]]_vars
==============================================================================
