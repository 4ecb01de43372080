--------------------------- MODULE MCRebalanceVain ---------------------------
(* No step is taken in vain. A guard against steps that change nothing is invisible to every other promise. *)
EXTENDS MCRebalance

NoStepInVain ==
    /\ \A p \in Process, b \in Broker : ENABLED Heartbeat(p, b) => p \notin members[b]
    /\ \A p \in Process : ENABLED RouteRefresh(p) => route[p] # listed
    /\ \A k \in Queue : ENABLED RouteChange(k) => k # listed
==============================================================================
