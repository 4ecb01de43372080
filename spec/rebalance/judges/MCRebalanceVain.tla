--------------------------- MODULE MCRebalanceVain ---------------------------
(* No step is taken in vain. A guard against steps that change nothing is invisible to every other promise. *)
EXTENDS MCRebalance

NoStepInVain ==
    /\ \A p \in Process, b \in Broker : ENABLED Heartbeat(p, b) => p \notin members[b]
    /\ \A p \in Process : ENABLED RouteRefresh(p) => route[p] # listed
    /\ \A k \in Queue : ENABLED RouteChange(k) => k # listed

\* No listener ever fails. (Expected to be violated.)
NeverFails == [][\A p \in Process, q \in Queue : running[p][q] \subseteq running'[p][q] \/ cached'[p][q] # cached[p][q]]_vars
\* No commit is ever lost. (Also expected to be violated.)
NeverLoses == [][net \subseteq net' \/ faults' = faults]_vars
==============================================================================
