------------------------- MODULE HaReplicationAbstract -------------------------
(***************************************************************************)
(* What a replicated broker promises to its clients, without brokers: a    *)
(* sequence of messages that can be read, an answer for each message that  *)
(* was sent, and faults that the chosen mode covers or does not cover.     *)
(*                                                                         *)
(*   - a message becomes readable when it is sent, at the end, once;       *)
(*   - an answer is given once and never taken back;                       *)
(*   - while the faults are covered, a message whose answer was `ok` can   *)
(*     be read until retention removes it;                                 *)
(*   - nothing can be read that was not sent.                              *)
(*                                                                         *)
(* HaReplication refines this module under the mapping at its end.         *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANT Msg

VARIABLES
    readable,  \* the messages that a consumer can read, oldest first
    answer,    \* answer[m]: "unsent", "pending", "ok", or "no_promise" (timeouts, unknown)
    expired,   \* messages that retention has removed
    covered    \* whether the mode covers the faults that have happened

vars == <<readable, answer, expired, covered>>

In(sequence) == {sequence[i] : i \in 1..Len(sequence)}
Once(sequence) == Cardinality(In(sequence)) = Len(sequence)
Sent == {m \in Msg : answer[m] # "unsent"}
Acknowledged == {m \in Msg : answer[m] = "ok"}

\* The promise of a state.
Kept == covered => Acknowledged \subseteq In(readable) \cup expired

Init == /\ readable = <<>>
        /\ answer = [m \in Msg |-> "unsent"]
        /\ expired = {}
        /\ covered \in BOOLEAN

\* A producer's message is stored: readable at once, not yet answered.
Send == \E m \in Msg :
    /\ answer[m] = "unsent"
    /\ answer' = [answer EXCEPT ![m] = "pending"]
    /\ readable' = Append(readable, m)
    /\ UNCHANGED <<expired, covered>>

\* The producer hears something.
GiveAnswer == \E m \in Msg, a \in {"ok", "no_promise"} :
    /\ answer[m] = "pending"
    /\ answer' = [answer EXCEPT ![m] = a]
    /\ UNCHANGED <<readable, expired, covered>>

\* Retention removes the oldest messages.
Forget == \E k \in 1..Len(readable) :
    /\ readable' = SubSeq(readable, k + 1, Len(readable))
    /\ expired' = expired \cup In(SubSeq(readable, 1, k))
    /\ \A i \in 1..k : answer[readable[i]] # "pending"
    /\ UNCHANGED <<answer, covered>>

\* A fault, or an operator: some messages can no longer be read, others can again, in any case only
\* messages that were sent, each once; whoever waited never hears.
Upheaval ==
    /\ covered' \in BOOLEAN
    /\ In(readable') \subseteq Sent /\ Once(readable')
    /\ \A m \in Msg : answer'[m] = answer[m] \/ (answer[m] = "pending" /\ answer'[m] = "no_promise")
    /\ DOMAIN answer' = Msg
    /\ UNCHANGED expired
    /\ Kept'

\* Most steps of a broker change nothing here; TLC tries the disjuncts from left to right.
Next == UNCHANGED vars \/ Send \/ GiveAnswer \/ Forget \/ Upheaval

Spec == Init /\ [][Next]_vars
==============================================================================
