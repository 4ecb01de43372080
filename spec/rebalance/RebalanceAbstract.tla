--------------------------- MODULE RebalanceAbstract ---------------------------
(***************************************************************************)
(* What a consumer group promises to its users, without clients, brokers,  *)
(* member lists or locks: for each queue there are the messages whose      *)
(* effect has happened, and the offset up to which the group considers the *)
(* queue settled. Whoever takes the queue over begins there, so            *)
(*                                                                         *)
(*   - an offset is settled only when everything before it has happened    *)
(*     (at least once: the settled offset may fall, and then effects       *)
(*     happen again, but no message is skipped);                           *)
(*   - of an orderly queue at most one consumer is at work at a time.      *)
(*                                                                         *)
(* Rebalance refines this module under the mapping at its end.             *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS Queue, Offset, None

VARIABLES
    settled,   \* settled[q]: the offset at which a new owner would begin, or None
    happened,  \* happened[q]: offsets whose effect has happened
    origin,    \* origin[q]: where the group began to consume q, or None
    busy       \* busy[q]: who is at work on q (orderly queues)

vars == <<settled, happened, origin, busy>>

Init == /\ settled = [q \in Queue |-> None]
        /\ happened = [q \in Queue |-> {}]
        /\ origin = [q \in Queue |-> None]
        /\ busy = [q \in Queue |-> {}]

\* Everything before o has happened.
Before(q, o, from, set) == o # None => from # None /\ \A x \in from..(o - 1) : x \in set

\* A message has its effect; its consumer may be free again.
Happen(q) ==
    /\ \E o \in Offset : happened' = [happened EXCEPT ![q] = @ \cup {o}]
    /\ busy'[q] \subseteq busy[q] /\ busy' = [busy EXCEPT ![q] = busy'[q]]
    /\ UNCHANGED <<settled, origin>>

\* The group settles on an offset, higher or lower than before; perhaps on none, if it never had saved one.
\* The first owner fixes where the group began.
Settle(q) ==
    /\ \/ origin' = origin
       \/ origin[q] = None /\ \E o \in Offset : origin' = [origin EXCEPT ![q] = o]
    /\ settled' # settled \/ origin' # origin
    /\ \A r \in Queue : settled'[r] # settled[r] => Before(r, settled'[r], origin'[r], happened[r])
    /\ UNCHANGED <<happened, busy>>

\* A consumer begins to work, alone.
Work(q) ==
    /\ busy[q] = {}
    /\ Cardinality(busy'[q]) = 1 /\ busy' = [busy EXCEPT ![q] = busy'[q]]
    /\ UNCHANGED <<settled, happened, origin>>

\* Some consumers stop: they finish without success, leave or die.
Stop ==
    /\ \A q \in Queue : busy'[q] \subseteq busy[q]
    /\ DOMAIN busy' = Queue
    /\ UNCHANGED <<settled, happened, origin>>

\* An operator declares what is settled.
Reset(q) ==
    \E o \in Offset :
        /\ origin[q] # None
        /\ settled' = [settled EXCEPT ![q] = o]
        /\ origin' = [origin EXCEPT ![q] = IF o < @ THEN o ELSE @]
        /\ happened' = [happened EXCEPT ![q] = {x \in @ : x < o} \cup origin[q]..(o - 1)]
        /\ UNCHANGED busy

Next == Stop \/ \E q \in Queue : Happen(q) \/ Settle(q) \/ Work(q) \/ Reset(q)

Spec == Init /\ [][Next]_vars
==============================================================================
