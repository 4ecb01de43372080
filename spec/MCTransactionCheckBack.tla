----------------------- MODULE MCTransactionCheckBack -----------------------
(***************************************************************************)
(* TransactionCheckBack with bounds, for exhaustive checking: how often    *)
(* each fault may happen, how often a half message is sent, and how long   *)
(* the log may grow.                                                       *)
(***************************************************************************)
EXTENDS TransactionCheckBack

CONSTANTS MaxLog,      \* records in the log
          MaxSends,    \* how often one half message is sent
          MaxDup,      \* decisions that arrive twice
          MaxLoss,     \* decisions, check-backs and answers that are lost
          MaxCrash,    \* process crashes
          MaxPowerLoss,\* power losses
          MaxAbort,    \* rounds that end by an error
          MaxDeath     \* producers that die

VARIABLE used          \* how often each of these happened

mcVars == <<vars, used>>

CONSTANTS t1, t2, g1, g2
OneGroup  == [t \in Tx |-> g1]
TwoGroups == [t \in Tx |-> IF t = t1 THEN g1 ELSE g2]

Count1(what, max) == used[what] < max /\ used' = [used EXCEPT ![what] = @ + 1]

MCInit == Init /\ used = [sends |-> [t \in Tx |-> 0], dup |-> 0, loss |-> 0, crash |-> 0, power |-> 0,
                          abort |-> 0, death |-> 0]

MCNext ==
    \/ /\ UNCHANGED used
       /\ \/ \E m \in endNet : EndTransaction(m)
          \/ \E h \in pendingOps : WriteOp(h)
          \/ RoundStart \/ PullOps \/ HalfRemoved \/ HalfDiscard \/ HalfImmune
          \/ HalfRenewAndCheck \/ RoundFinish
          \/ PersistProgress \/ FlushLog
          \/ \E t \in Tx : \E d \in {"commit", "rollback"} : LocalDecide(t, d)
          \/ \E c \in checkNet : CheckReply(c)
          \/ \E t \in Tx : ImmunityOver(t)
    \/ \E t \in Tx, answered \in BOOLEAN :
          /\ used.sends[t] < MaxSends
          /\ used' = [used EXCEPT !.sends[t] = @ + 1]
          /\ SendHalf(t, answered)
    \/ Count1("abort", MaxAbort) /\ RoundAbort
    \/ Count1("loss", MaxLoss) /\ \/ \E m \in endNet : LoseEnd(m)
                                  \/ \E c \in checkNet : LoseCheck(c)
    \/ Count1("dup", MaxDup) /\ \E m \in endNet : DuplicateEnd(m)
    \/ Count1("death", MaxDeath) /\ \E t \in Tx : ProducerDeath(t)
    \/ Count1("crash", MaxCrash) /\ ProcessCrash
    \/ Count1("power", MaxPowerLoss) /\ \E kept \in 0..Len(log) : PowerLoss(kept)

MCSpec == MCInit /\ [][MCNext]_mcVars
MCFairSpec == MCSpec /\ Fairness

ShortLog == Len(log) <= MaxLog
==============================================================================
