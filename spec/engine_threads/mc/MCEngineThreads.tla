-------------------------- MODULE MCEngineThreads --------------------------
\* EngineThreads is finite by its programs; here they are.
EXTENDS EngineThreads, TLC

ChangeBetweenSends == <<"send", "change", "send">>
ChangeBeforeMore   == <<"send", "change", "send", "send">>
TwoChanges         == <<"change", "send", "change", "send">>
ChangeThenSend     == <<"change", "send">>
SendThenChange     == <<"send", "change">>

\* What must be possible: a flush that fails.
NeverFails == ~failed

\* And a connection whose frames were held back, and of which IO serves one itself again.
NeverFree == \A c \in Conn : ~(begun[c] > 0 /\ ENABLED ServeFrame(c))

Alike == Permutations(Conn)
=============================================================================
