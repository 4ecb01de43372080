---- MODULE TraceTurnstile ----
EXTENDS Turnstile
CONSTANT Events
VARIABLE taken
Is(name) == taken < Len(Events) /\ Events[taken + 1].action = name
TraceInit == Init /\ taken = 0
TraceNext ==
    /\ taken' = taken + 1
    /\ \/ Is("InsertCoin") /\ InsertCoin(1) /\ paid' = Events[taken + 1].paid_after
       \/ Is("WalkIn") /\ WalkIn
TraceSpec == TraceInit /\ [][TraceNext]_<<vars, taken>>
====
