---------------------- MODULE TraceTransactionCheckBack ----------------------
(***************************************************************************)
(* Is a recorded trace of a broker a behaviour of TransactionCheckBack?    *)
(* Each step takes the next event: it must be possible in the present      *)
(* state, and the state after it must be the one that the event describes. *)
(*                                                                         *)
(* A broker's trace has no events of its producers: a decision becomes     *)
(* known when it arrives (EndTransaction), and must not differ from an     *)
(* earlier one about the same message. Offsets of a trace begin at 0, those*)
(* of the model at 1; physical offsets are bytes there and positions here, *)
(* so a flush covers the records that begin before its end.                *)
(***************************************************************************)
EXTENDS TransactionCheckBack, Integers

CONSTANT Events
VARIABLES taken,   \* how many events have been taken
          places   \* places[p]: the physical offset of the record at position p; -1 when no event told
traceVars == <<vars, taken, places>>

WithMessage == {"SendHalf", "EndTransaction", "HalfDiscard", "HalfImmune", "HalfRenewAndCheck", "ImmunityOver"}
TraceTx     == {Events[i].message : i \in {k \in 1..Len(Events) : Events[k].action \in WithMessage}}
TraceGroup  == [t \in TraceTx |-> "group"]
\* A message that a round found too young to ask for asked for immunity itself.
TraceImmune == {Events[i].message : i \in {k \in 1..Len(Events) : Events[k].action = "HalfImmune"}}

DecisionOf(code) == IF code = 8 THEN "commit" ELSE IF code = 12 THEN "rollback" ELSE "none"

TraceInit == Init /\ taken = 0 /\ places = <<>>

\* Places of the records that a step appended: the first one is known, if the event tells it.
Grown(first) == places' = [p \in 1..Len(log') |-> IF p <= Len(places) THEN places[p]
                                                  ELSE IF p = Len(log) + 1 THEN first ELSE -1]

Decided(e) ==
    LET m == [tx |-> e.message, half |-> e.half_offset + 1, pos |-> HalfPos(e.half_offset + 1),
              decision |-> DecisionOf(e.decision)]
    IN  /\ m.decision # "none"
        /\ decision[e.message] \in {"none", m.decision}
        /\ decision' = [decision EXCEPT ![e.message] = m.decision]
        /\ Matches(m)
        /\ TakeDecision(m)
        /\ UNCHANGED <<flushed, progress, saved, round, young, known, dead, netVars, happened>>
        /\ Grown(-1)

AtOffset(e) == AtHalf /\ round.i = e.half_offset + 1

Flushed(e) == LET known_ == {p \in 1..Len(places) : places[p] >= 0 /\ places[p] < e.flushed_to}
                  upTo == IF known_ = {} THEN 0 ELSE CHOOSE p \in known_ : \A q \in known_ : q <= p
              IN  IF upTo <= flushed THEN UNCHANGED vars ELSE FlushLog /\ flushed' = upTo

InRound(e) ==
    \/ e.action = "RoundStart" /\ RoundStart /\ round'.h0 = e.half_offset + 1 /\ round'.o0 = e.op_offset + 1
    \/ /\ e.action = "PullOps"
       /\ round.on /\ round.next = e.op_offset_from + 1
       /\ PullOps
       /\ round'.next = e.op_offset_to + 1
    \/ e.action = "HalfRemoved" /\ AtOffset(e) /\ HalfRemoved
    \/ /\ e.action = "HalfDiscard"
       /\ AtOffset(e) /\ Current.tx = e.message /\ Current.checks = e.check_times
       /\ HalfDiscard
    \/ /\ e.action = "HalfImmune"
       /\ AtOffset(e) /\ Current.tx = e.message
       /\ HalfImmune
       /\ log'[Len(log')].off = e.new_offset + 1
    \/ /\ e.action = "HalfRenewAndCheck"
       /\ AtOffset(e) /\ Current.tx = e.message
       /\ HalfRenewAndCheck
       /\ log'[Len(log')].off = e.new_offset + 1 /\ log'[Len(log')].checks = e.check_times
    \/ /\ e.action = "RoundFinish"
       /\ RoundFinish
       /\ progress'.half = e.half_offset + 1 /\ progress'.op = e.op_offset + 1
    \/ e.action = "RoundAbort" /\ RoundAbort

Take(e) ==
    \/ /\ e.action = "SendHalf"
       /\ SendHalf(e.message, FALSE)
       /\ log'[Len(log')].off = e.half_offset + 1
       /\ Grown(e.physical_offset)
    \/ e.action = "EndTransaction" /\ Decided(e)
    \/ /\ e.action = "WriteOp"
       /\ WriteOp
       /\ log'[Len(log')].off = e.op_offset + 1 /\ log'[Len(log')].half = e.half_offset + 1
       /\ Grown(-1)
    \/ InRound(e) /\ Grown(-1)
    \/ /\ e.action = "PersistProgress"
       /\ PersistProgress
       /\ saved' = [half |-> e.half_offset + 1, op |-> e.op_offset + 1]
       /\ UNCHANGED places
    \/ e.action = "FlushLog" /\ Flushed(e) /\ UNCHANGED places
    \/ e.action = "ImmunityOver" /\ ImmunityOver(e.message) /\ UNCHANGED places
    \/ e.action = "ProcessCrash" /\ ProcessCrash /\ UNCHANGED places

TraceNext == /\ taken < Len(Events)
             /\ taken' = taken + 1
             /\ Take(Events[taken + 1])

TraceSpec == TraceInit /\ [][TraceNext]_traceVars

\* Acceptance is refinement. The one step that Next does not have is a decision that arrives although nobody saw it leave.
Arrives == \E t \in Tx, h \in 1..Count("half"), d \in {"commit", "rollback"} :
    Decided([message |-> t, half_offset |-> h - 1, decision |-> IF d = "commit" THEN 8 ELSE 12])
StepsOfNext == [][Next \/ Arrives]_vars
==============================================================================
