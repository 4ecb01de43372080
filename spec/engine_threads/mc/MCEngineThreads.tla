-------------------------- MODULE MCEngineThreads --------------------------
\* EngineThreads is finite by its programs; here they are.
EXTENDS EngineThreads, TLC

ChangeBetweenSends == <<"send", "change", "send">>
ColdBetweenSends   == <<"send", "cold", "send">>
EverythingOnce     == <<"send", "change", "cold", "send">>
TwoChanges         == <<"change", "send", "change", "send">>
SendThenChange     == <<"send", "change">>
SendThenCold       == <<"send", "cold">>
TwoSends           == <<"send", "send">>

\* What must be possible: a flush that fails.
NeverFails == ~failed

\* A connection whose bars are gone, and of which IO serves one itself again.
NeverFree == \A c \in Conn : ~(\E n \in Range(begins[c]) : Program[n] # "send") \/ bars[c] > 0 \/ ~Servable(c)

\* A control plane that waits for the lock, and an IO thread that does.
ControlNeverWaits == ~(control = "acts" /\ Holds("io"))
IONeverWaits      == ~(io = "serves" /\ Holds("control"))

\* A flush that is under way while IO appends more.
NeverBehind == ~(slot = "asked" /\ target < wrote)

Alike == Permutations(Conn)
=============================================================================
