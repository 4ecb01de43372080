-------------------- MODULE TransactionCheckBackAbstract --------------------
(***************************************************************************)
(* What transactional messages promise to an application: it sees a        *)
(* message only after its producer decided to commit it, and then once.    *)
(* A message that nobody decided about is set aside where an operator      *)
(* finds it. A power loss can take back what was not flushed; then the     *)
(* message can become visible again.                                       *)
(*                                                                         *)
(* TransactionCheckBack refines this module with every repair on.          *)
(***************************************************************************)
EXTENDS Naturals

CONSTANTS Tx

VARIABLES decision,  \* decision[t]: "none", "commit" or "rollback"
          visible,   \* visible[t]: how often a consumer of the topic finds the message of t
          aside      \* the transactions that were set aside

vars == <<decision, visible, aside>>

Init == /\ decision = [t \in Tx |-> "none"]
        /\ visible = [t \in Tx |-> 0]
        /\ aside = {}

\* The producer decides, once and for all.
Decide(t, d) ==
    /\ decision[t] = "none"
    /\ d \in {"commit", "rollback"}
    /\ decision' = [decision EXCEPT ![t] = d]
    /\ UNCHANGED <<visible, aside>>

\* The message of a committed transaction becomes visible.
Deliver(t) ==
    /\ decision[t] = "commit"
    /\ visible[t] = 0
    /\ visible' = [visible EXCEPT ![t] = 1]
    /\ UNCHANGED <<decision, aside>>

\* Nobody decided for too long, or the decision never arrived.
SetAside(t) ==
    /\ visible[t] = 0
    /\ aside' = aside \cup {t}
    /\ UNCHANGED <<decision, visible>>

\* A power loss takes back what was not flushed, of several messages at once.
Lose == /\ visible' \in [Tx -> {0, 1}]
        /\ \A t \in Tx : visible'[t] <= visible[t]
        /\ aside' \subseteq aside
        /\ UNCHANGED decision

Next == \/ \E t \in Tx : Deliver(t) \/ SetAside(t) \/ \E d \in {"commit", "rollback"} : Decide(t, d)
        \/ Lose

Spec == Init /\ [][Next]_vars
==============================================================================
