------------------------ MODULE StoreRecoveryAbstract ------------------------
(***************************************************************************)
(* A store as its clients know it: messages that were sent, those whose    *)
(* survival is promised, those that are stored, those that were seen. No   *)
(* files, no flushes, no recovery: a store goes down and comes up.         *)
(***************************************************************************)
EXTENDS Naturals, FiniteSets

CONSTANT SyncFlush

VARIABLES sent,      \* messages 1..sent have been sent
          stored,    \* the messages that the store holds
          promised,  \* the messages that it promised to keep
          gone,      \* the messages that it removed because they were old
          seen,      \* what consumers got: [q, o, m]
          up         \* whether it serves

vars == <<sent, stored, promised, gone, seen, up>>

Init == sent = 0 /\ stored = {} /\ promised = {} /\ gone = {} /\ seen = {} /\ up = FALSE

\* A producer sends the next message, and the store takes it.
Send ==
    /\ up
    /\ sent' = sent + 1
    /\ stored' = stored \cup {sent'}
    /\ UNCHANGED <<promised, gone, seen, up>>

\* The store promises to keep a message that it holds (or held until it was old).
Promise ==
    /\ up
    /\ \E m \in stored : promised' = promised \cup {m}
    /\ UNCHANGED <<sent, stored, gone, seen, up>>

\* A consumer sees a message that the store holds. With sync flush an offset never changes its message.
See ==
    /\ up
    /\ \E got \in seen' \ seen :
          /\ seen' = seen \cup {got}
          /\ got.m \in stored
          /\ SyncFlush => \A other \in seen : other.q = got.q /\ other.o = got.o => other.m = got.m
    /\ UNCHANGED <<sent, stored, promised, gone, up>>

\* The oldest messages are removed.
Retire ==
    /\ up
    /\ stored' \subseteq stored
    /\ gone' = gone \cup (stored \ stored')
    /\ \A m \in stored \ stored', n \in stored' : m < n
    /\ UNCHANGED <<sent, promised, seen, up>>

\* The store goes down, by order or by a crash, and keeps everything.
GoDown == up /\ up' = FALSE /\ UNCHANGED <<sent, stored, promised, gone, seen>>

\* The power fails, up or down: what was not promised may be lost, and nothing comes instead. With sync flush the
\* promise stands and nothing is lost that was seen.
Lose ==
    /\ up' = FALSE
    /\ stored' \subseteq stored
    /\ promised' \subseteq promised
    /\ SyncFlush => promised' = promised
    /\ promised' \subseteq stored' \cup gone
    /\ SyncFlush => \A got \in seen : got.m \in stored' \cup gone
    /\ UNCHANGED <<sent, gone, seen>>

\* The store comes up again with exactly what it had when it went down.
ComeUp == ~up /\ up' = TRUE /\ UNCHANGED <<sent, stored, promised, gone, seen>>

Next == Send \/ Promise \/ See \/ Retire \/ GoDown \/ Lose \/ ComeUp

Spec == Init /\ [][Next]_vars

PromisedIsStored == promised \subseteq stored \cup gone
==============================================================================
