----------------------- MODULE MCTransactionCheckBack -----------------------
(***************************************************************************)
(* TransactionCheckBack with bounds, for exhaustive checking: how often    *)
(* each fault may happen, how many half messages are sent, and how long    *)
(* the log may grow. Also the mapping to what it promises.                 *)
(***************************************************************************)
EXTENDS TransactionCheckBack, TLC

CONSTANTS MaxLog,      \* records in the log
          MaxSend,     \* half messages that are sent, repetitions included
          MaxLoss,     \* decisions, check-backs and answers that are lost
          MaxDup,      \* decisions that arrive twice
          MaxDeath,    \* producers that die
          MaxAbort,    \* rounds that end with an error
          MaxCrash,    \* process crashes
          MaxPower     \* power losses

CONSTANTS t1, t2, g1, g2
OneGroup  == [t \in Tx |-> g1]
TwoGroups == [t \in Tx |-> IF t = t1 THEN g1 ELSE g2]

\* The bounds are guards and not constraints: TLC would check every promise again in each state beyond a constraint.
Most == [send |-> MaxSend, loss |-> MaxLoss, dup |-> MaxDup, death |-> MaxDeath, abort |-> MaxAbort,
         crash |-> MaxCrash, power |-> MaxPower]
RoomWithin == Len(log) < MaxLog
Within(kind) == happened[kind] < Most[kind]

\* Of all faults that may happen, one does. (To send a half message is none.)
NoFaultYet == \A kind \in DOMAIN happened \ {"send"} : happened[kind] = 0
OneOfThem(kind) == Within(kind) /\ (kind = "send" \/ NoFaultYet)

\* Flushing less than everything is left out: a power loss may keep less than everything anyway.
FlushAll == IF flushed < Len(log) THEN {Len(log)} ELSE {}

Alike == Permutations(Tx)

\* An action that a question does not need.
Never == FALSE

\* ImmunityOver of a message whose producer decides before anybody asks.
OverWhenDecided(t) ==
    /\ t \in young
    /\ decision[t] # "none" \/ t \in dead
    /\ young' = young \ {t}
    /\ UNCHANGED <<brokerVars, producerVars, netVars, happened>>

\* Where something must come in the end, the log must not be what stops it.
NeverFull == Len(log) < MaxLog

\* What it promises: the finals of a transaction are what a consumer finds.
Promise == INSTANCE TransactionCheckBackAbstract WITH
              visible <- [t \in Tx |-> Cardinality(FinalsOf(t))],
              aside <- {t \in Tx : SetAside(t)}
Refines == Promise!Spec
==============================================================================
