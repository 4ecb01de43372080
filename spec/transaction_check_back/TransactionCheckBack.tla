------------------------ MODULE TransactionCheckBack ------------------------
(***************************************************************************)
(* Transactional messages: a producer stores a half message that nobody    *)
(* can consume, runs its local transaction, and tells the broker to commit *)
(* or to roll back. The broker asks about a decision that never arrives:   *)
(* it walks through the half messages in rounds and checks back with the   *)
(* producer, up to CheckMax times, and then sets the message aside.        *)
(*                                                                         *)
(* Modelled: one broker with one log (half, op, final and set-aside records*)
(* in one sequence, because a power loss cuts all of them together), the   *)
(* flushed prefix, the progress of the rounds in memory and in the offset  *)
(* file, rounds as single steps between which everything else may happen,  *)
(* one-way decisions and check-backs that are lost, late, reordered or     *)
(* delivered twice, half messages sent again after a lost answer, several  *)
(* producer groups, producer death (somebody else of the group is asked),  *)
(* immunity, an append that fails and ends a round early, process crash,   *)
(* power loss.                                                             *)
(* Left out: time (a message is young until ImmunityOver; a producer's     *)
(* clock that is wrong only moves that moment), the 72 hour limit (it acts *)
(* as CheckMax does), an op or a set-aside copy that the store refuses     *)
(* (RocketMQ logs it and goes on: the first is a crash before WriteOp, the *)
(* second a message that nobody sees again), a producer that changes its   *)
(* mind, several half queues (they share nothing), slaves and a promotion  *)
(* with older progress (for the rounds it is a crash; HaReplication has    *)
(* the rest), torn records (recovery cuts at a record boundary:            *)
(* StoreRecovery), op messages for several halves at once (5.x).           *)
(* Read from: EndTransactionProcessor, TransactionalMessageServiceImpl,    *)
(* TransactionalMessageBridge, RocketMQ 4.9.8.                             *)
(*                                                                         *)
(* Each switch is FALSE for the behaviour of 4.9.8 and TRUE for a repair.  *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS Tx,          \* the transactions, named by the unique key of their message
          Group,       \* Group[t]: the producer group of t
          Immune,      \* the transactions whose message asks for immunity from early checks
          CheckMax,    \* after so many checks a half message is set aside (15)
          Batch,       \* how many op messages one pull returns (32)
          CheckUniqKey,      \* a decision must name the unique key of the record that it decides on
          CheckHalfTopic,    \* a decision must point at a record of the half topic
          FinishedSet,       \* the unique keys of finished messages are remembered: decisions and rounds ask them
          PersistBehindFlush,\* progress is written only when the log that justifies it is flushed
          CountRealChecks    \* a copy made because of immunity does not count as a check

VARIABLES log,       \* records, see the four constructors below; a position is a physical offset
          flushed,   \* how many records a power loss cannot take
          progress,  \* [half, op, at]: where the next round begins, and the log length that justified it
          saved,     \* [half, op]: the same in the offset file
          round,     \* the running round, or Idle
          pendingOps,\* half offsets that are decided but have no op message yet
          young,     \* transactions whose message is too young to be checked
          decision,  \* decision[t]: what the producer decided: "none", "commit" or "rollback", never changed
          known,     \* known[t]: [half, pos] of the half message as the producer learned it
          dead,      \* transactions whose producer died
          endNet,    \* decisions in flight: [tx, half, pos, decision]
          checkNet,  \* check-backs in flight: [tx, half, pos]
          happened   \* how often each kind of fault happened: a history variable, for the bounds of a model

brokerVars == <<log, flushed, progress, saved, round, pendingOps>>
producerVars == <<decision, known, dead>>
netVars == <<endNet, checkNet>>
vars == <<brokerVars, young, producerVars, netVars, happened>>

------------------------------------------------------------------------------
(* Records and where they are. Each has its kind and
   off    the offset in the queue of its kind, from 1 (of what is set aside nobody asks)
   tx     its transaction (an op message has none)
   checks the number of checks that a half message carries
   asked  the number of times that the producer really was asked
   half   the half offset that an op or a final message names, or from which an immune copy was first made
   source the position of the record that a final message was made from *)

Positions(kind) == {p \in 1..Len(log) : log[p].kind = kind}
Count(kind)     == Cardinality(Positions(kind))

Half(t, checks, asked, original) ==
    [kind |-> "half", off |-> Count("half") + 1, tx |-> t, checks |-> checks, asked |-> asked, half |-> original]
Op(h)            == [kind |-> "op", off |-> Count("op") + 1, half |-> h]
Final(t, h, pos) == [kind |-> "final", off |-> Count("final") + 1, tx |-> t, half |-> h, source |-> pos]
Aside(t, n)      == [kind |-> "aside", tx |-> t, asked |-> n]

HalfPos(h) == CHOOSE p \in 1..Len(log) : log[p].kind = "half" /\ log[p].off = h
OpPos(o)   == CHOOSE p \in 1..Len(log) : log[p].kind = "op" /\ log[p].off = o

HalvesOf(t)   == {p \in 1..Len(log) : log[p].kind = "half" /\ log[p].tx = t}
FinalsOf(t)   == {p \in 1..Len(log) : log[p].kind = "final" /\ log[p].tx = t}
Delivered(t)  == \E p \in 1..Len(log) : log[p].kind = "final" /\ log[p].tx = t
SetAside(t)   == \E p \in 1..Len(log) : log[p].kind = "aside" /\ log[p].tx = t
HasOp(h)      == \E p \in 1..Len(log) : log[p].kind = "op" /\ log[p].half = h

\* What a broker that remembers finished messages knows: final, or decided and with or soon with an op.
Finished(t)   == Delivered(t) \/ \E p \in HalvesOf(t) : HasOp(log[p].off) \/ log[p].off \in pendingOps

------------------------------------------------------------------------------
(* The round *)

Idle == [on |-> FALSE, i |-> 0, start |-> 0, remove |-> {}, next |-> 0, last |-> 0,
         empty |-> FALSE, pulled |-> FALSE, done |-> {}, h0 |-> 0, o0 |-> 0]

Current   == log[HalfPos(round.i)]
AtHalf    == round.pulled /\ round.i <= Count("half")
InRemove  == \E r \in round.remove : r.half = round.i
Fresh     == HalfPos(round.i) > round.start           \* stored after the round began
TooOften  == Current.checks >= CheckMax
IsYoung   == Current.tx \in young
WantsImmunity == Current.tx \in Immune

\* A half is checked when every op has been read, or when the ops being read are younger than the round.
NeedCheck  == IF round.empty THEN TRUE ELSE OpPos(round.last) > round.start
MayReadOn  == ~round.empty

Passed   == InRemove \/ (FinishedSet /\ Finished(Current.tx))
Examined == AtHalf /\ ~Passed /\ ~TooOften /\ ~Fresh

\* How far the op progress may go: over the ops that are done, without a gap.
WithoutGap == {n \in round.o0..(Count("op") + 1) : \A o \in round.o0..(n - 1) : o \in round.done}
OpPrefix   == CHOOSE n \in WithoutGap : \A k \in WithoutGap : k <= n

\* What a model bounds by definitions of its own: how long the log gets, how often each fault happens, what is flushed.
Room            == TRUE
MayHappen(kind) == TRUE
FlushEnds       == (flushed + 1)..Len(log)

Store(record) == Room /\ log' = Append(log, record)
Happens(kind) == MayHappen(kind) /\ happened' = [happened EXCEPT ![kind] = @ + 1]

------------------------------------------------------------------------------
Init == /\ log = <<>>
        /\ flushed = 0
        /\ progress = [half |-> 1, op |-> 1, at |-> 0]
        /\ saved = [half |-> 1, op |-> 1]
        /\ round = Idle
        /\ pendingOps = {}
        /\ young = Tx
        /\ decision = [t \in Tx |-> "none"]
        /\ known = [t \in Tx |-> {}]
        /\ dead = {}
        /\ endNet = {} /\ checkNet = {}
        /\ happened = [send |-> 0, loss |-> 0, dup |-> 0, death |-> 0, abort |-> 0, crash |-> 0, power |-> 0]

------------------------------------------------------------------------------
(* The producer *)

\* The producer sends its half message and the broker stores it. The answer may be lost: then the producer
\* does not know where the half message is, and sends again.                                    send_half
SendHalf(t, answered) ==
    /\ Happens("send")
    /\ t \notin dead
    /\ decision[t] = "none"
    /\ known[t] = {}
    /\ Store(Half(t, 0, 0, 0))
    /\ known' = IF answered
                THEN [known EXCEPT ![t] = {[half |-> Count("half") + 1, pos |-> Len(log) + 1]}]
                ELSE known
    /\ UNCHANGED <<flushed, progress, saved, round, pendingOps, young, decision, dead, netVars>>

\* The producer has run its local transaction and tells the broker, one-way.                 local_decide
LocalDecide(t, d) ==
    /\ t \notin dead
    /\ decision[t] = "none"
    /\ known[t] # {}
    /\ decision' = [decision EXCEPT ![t] = d]
    /\ endNet' = endNet \cup {[tx |-> t, half |-> k.half, pos |-> k.pos, decision |-> d] : k \in known[t]}
    /\ UNCHANGED <<brokerVars, young, known, dead, checkNet, happened>>

\* Check-backs go to any producer of the group.
GroupLives(t) == \E u \in Tx : Group[u] = Group[t] /\ u \notin dead

\* A producer of the group is asked about a half message. While its transaction runs it says nothing
\* that helps ("unknown"). If the answer to the half message never came, or the producer died before it decided, there
\* will be no transaction any more, and the answer is to roll back.                             check_reply
CheckReply ==
    \E c \in checkNet :
        /\ GroupLives(c.tx)
        /\ checkNet' = checkNet \ {c}
        /\ IF decision[c.tx] # "none"
           THEN /\ endNet' = endNet \cup {[tx |-> c.tx, half |-> c.half, pos |-> c.pos, decision |-> decision[c.tx]]}
                /\ UNCHANGED decision
           ELSE IF known[c.tx] = {} \/ c.tx \in dead
           THEN /\ decision' = [decision EXCEPT ![c.tx] = "rollback"]
                /\ endNet' = endNet \cup {[tx |-> c.tx, half |-> c.half, pos |-> c.pos, decision |-> "rollback"]}
           ELSE UNCHANGED <<endNet, decision>>
        /\ UNCHANGED <<brokerVars, young, known, dead, happened>>

------------------------------------------------------------------------------
(* The broker takes a decision *)

\* The record that a decision points at is the one it means, as far as the broker looks.
Matches(m) ==
    /\ m.pos <= Len(log)
    /\ \/ log[m.pos].kind = "half"
       \/ ~CheckHalfTopic /\ log[m.pos].kind = "final"
    /\ log[m.pos].off = m.half
    /\ Group[log[m.pos].tx] = Group[m.tx]
    /\ CheckUniqKey => log[m.pos].tx = m.tx

Refused(m) == FinishedSet /\ Delivered(log[m.pos].tx)

\* What a decision does to the broker. A commit appends the final message; both kinds owe an op message.
TakeDecision(m) ==
    IF ~Matches(m)
    THEN UNCHANGED <<log, pendingOps>>
    ELSE /\ pendingOps' = pendingOps \cup {m.half}
         /\ IF m.decision = "commit" /\ ~Refused(m)
            THEN Store(Final(log[m.pos].tx, m.half, m.pos))
            ELSE UNCHANGED log

\* The broker reads a decision that is in flight.                                           end_transaction
EndTransaction ==
    \E m \in endNet :
        /\ TakeDecision(m)
        /\ endNet' = endNet \ {m}
        /\ UNCHANGED <<flushed, progress, saved, round, young, producerVars, checkNet, happened>>

\* The op message that marks a half message as done is an append of its own: a crash can fall
\* between the final message and its op.                                                          write_op
WriteOp ==
    \E h \in pendingOps :
        /\ Store(Op(h))
        /\ pendingOps' = pendingOps \ {h}
        /\ UNCHANGED <<flushed, progress, saved, round, young, producerVars, netVars, happened>>

------------------------------------------------------------------------------
(* The broker's check rounds *)

\* The service begins a round where the last one ended; progress beyond a log that lost its end goes back to
\* that end.                                                                                   round_start
RoundStart ==
    /\ ~round.on
    /\ LET h == IF progress.half > Count("half") THEN Count("half") + 1 ELSE progress.half
           o == IF progress.op > Count("op") THEN Count("op") + 1 ELSE progress.op
       IN  round' = [Idle EXCEPT !.on = TRUE, !.i = h, !.start = Len(log), !.next = o, !.h0 = h, !.o0 = o]
    /\ UNCHANGED <<log, flushed, progress, saved, pendingOps, young, producerVars, netVars, happened>>

\* The round reads op messages: once at its beginning, and whenever a half message is neither known to be
\* done nor to be checked.                                                                         pull_ops
PullOps ==
    /\ round.on
    /\ \/ ~round.pulled
       \/ Examined /\ ~IsYoung /\ MayReadOn
    /\ LET read == {o \in round.next..(round.next + Batch - 1) : o <= Count("op")}
           new  == {[half |-> log[OpPos(o)].half, op |-> o] : o \in read}
           keep == {r \in new : r.half >= round.h0 /\ ~\E s \in new : s.half = r.half /\ s.op > r.op}
           old  == {r \in round.remove : ~\E s \in keep : s.half = r.half}
           end  == round.next + Cardinality(read)
       IN  round' = [round EXCEPT !.pulled = TRUE,
                                  !.empty = (read = {}),
                                  !.last = end - 1,
                                  !.next = end,
                                  !.remove = old \cup keep,
                                  !.done = @ \cup {r.op : r \in {x \in new : x.half < round.h0}}]
    /\ UNCHANGED <<log, flushed, progress, saved, pendingOps, young, producerVars, netVars, happened>>

\* The round passes a half message whose op message it has read, or that it knows to be finished. half_removed
HalfRemoved ==
    /\ AtHalf
    /\ Passed
    /\ LET mine == {r \in round.remove : r.half = round.i}
       IN  round' = [round EXCEPT !.i = @ + 1, !.remove = @ \ mine, !.done = @ \cup {r.op : r \in mine}]
    /\ UNCHANGED <<log, flushed, progress, saved, pendingOps, young, producerVars, netVars, happened>>

\* A half message that was checked too often is copied to the set-aside topic.                 half_discard
HalfDiscard ==
    /\ AtHalf
    /\ ~Passed
    /\ TooOften
    /\ Store(Aside(Current.tx, Current.asked))
    /\ round' = [round EXCEPT !.i = @ + 1]
    /\ UNCHANGED <<flushed, progress, saved, pendingOps, young, producerVars, netVars, happened>>

\* A half message that asks for immunity is still too young: a copy goes to the end of the half queue, and
\* remembers the offset of the first one. RocketMQ also asks whether it has read an op message of the first one; that
\* never succeeds (ImmunityTestNeverSucceeds), so it is left out here.                           half_immune
HalfImmune ==
    /\ Examined
    /\ WantsImmunity
    /\ IsYoung
    /\ Store(Half(Current.tx,
                  IF CountRealChecks THEN Current.checks ELSE Current.checks + 1,
                  Current.asked,
                  IF Current.half # 0 THEN Current.half ELSE round.i))
    /\ round' = [round EXCEPT !.i = @ + 1]
    /\ UNCHANGED <<flushed, progress, saved, pendingOps, young, producerVars, netVars, happened>>

\* A half message of unknown fate is appended again and the producer is asked about the copy.
\*                                                                                    half_renew_and_check
HalfRenewAndCheck ==
    /\ Examined
    /\ ~IsYoung
    /\ NeedCheck
    /\ Store(Half(Current.tx, Current.checks + 1, Current.asked + 1, Current.half))
    /\ checkNet' = checkNet \cup {[tx |-> Current.tx, half |-> Count("half") + 1, pos |-> Len(log) + 1]}
    /\ round' = [round EXCEPT !.i = @ + 1]
    /\ UNCHANGED <<flushed, progress, saved, pendingOps, young, producerVars, endNet, happened>>

\* The round stores its progress in memory: it has come to a half message that is too young, or newer than
\* itself, or to the end; or its time is up, or the store does not take a copy, after it got somewhere.
\*                                                                                            round_finish
RoundFinish ==
    /\ round.pulled
    /\ IF round.i > round.h0 \/ round.i > Count("half") THEN TRUE ELSE Fresh \/ IsYoung
    /\ progress' = [half |-> round.i, op |-> OpPrefix, at |-> Len(log)]
    /\ round' = Idle
    /\ UNCHANGED <<log, flushed, saved, pendingOps, young, producerVars, netVars, happened>>

\* An error ends the round; what it did stays, its progress is not stored.                     round_abort
RoundAbort ==
    /\ Happens("abort")
    /\ round.on
    /\ round' = Idle
    /\ UNCHANGED <<log, flushed, progress, saved, pendingOps, young, producerVars, netVars>>

\* The offset file is written, every five seconds.                                         persist_progress
PersistProgress ==
    /\ saved # [half |-> progress.half, op |-> progress.op]
    /\ PersistBehindFlush => flushed >= progress.at
    /\ saved' = [half |-> progress.half, op |-> progress.op]
    /\ UNCHANGED <<log, flushed, progress, round, pendingOps, young, producerVars, netVars, happened>>

\* The log is flushed up to a position.                                                           flush_log
FlushLog ==
    \E upTo \in FlushEnds :
        /\ flushed' = upTo
        /\ UNCHANGED <<log, progress, saved, round, pendingOps, young, producerVars, netVars, happened>>

------------------------------------------------------------------------------
(* The environment *)

LoseEnd ==
    \E m \in endNet :
        /\ Happens("loss")
        /\ endNet' = endNet \ {m}
        /\ UNCHANGED <<brokerVars, young, producerVars, checkNet>>

DuplicateEnd ==
    \E m \in endNet :
        /\ Happens("dup")
        /\ TakeDecision(m)
        /\ UNCHANGED <<flushed, progress, saved, round, young, producerVars, netVars>>

LoseCheck ==
    \E c \in checkNet :
        /\ Happens("loss")
        /\ checkNet' = checkNet \ {c}
        /\ UNCHANGED <<brokerVars, young, producerVars, endNet>>

\* A producer dies. Its decisions are safe in its database, but nobody answers for them any more.
ProducerDeath(t) ==
    /\ Happens("death")
    /\ t \notin dead
    /\ dead' = dead \cup {t}
    /\ UNCHANGED <<brokerVars, young, decision, known, netVars>>

ImmunityOver(t) ==
    /\ t \in young
    /\ young' = young \ {t}
    /\ UNCHANGED <<brokerVars, producerVars, netVars, happened>>

\* After either crash the broker knows only its log and its offset file. Decisions and check-backs in
\* flight stay: a client may hold them back for as long as it likes.
ProcessCrash ==
    /\ Happens("crash")
    /\ progress' = [half |-> saved.half, op |-> saved.op, at |-> 0]
    /\ round' = Idle
    /\ pendingOps' = {}
    /\ UNCHANGED <<log, flushed, saved, young, producerVars, netVars>>

PowerLoss ==
    \E kept \in flushed..Len(log) :
        /\ Happens("power")
        /\ log' = SubSeq(log, 1, kept)
        /\ flushed' = kept
        /\ progress' = [half |-> saved.half, op |-> saved.op, at |-> 0]
        /\ round' = Idle
        /\ pendingOps' = {}
        /\ UNCHANGED <<saved, young, producerVars, netVars>>

------------------------------------------------------------------------------
\* The check-back service is one thread.
RoundStep == RoundStart \/ PullOps \/ HalfRemoved \/ HalfDiscard \/ HalfImmune \/ HalfRenewAndCheck \/ RoundFinish

Broker == \/ EndTransaction \/ WriteOp
          \/ RoundStep \/ RoundAbort
          \/ PersistProgress \/ FlushLog

Producer == \/ \E t \in Tx, answered \in BOOLEAN : SendHalf(t, answered)
            \/ \E t \in Tx, d \in {"commit", "rollback"} : LocalDecide(t, d)
            \/ CheckReply

Environment == \/ LoseEnd \/ DuplicateEnd \/ LoseCheck
               \/ \E t \in Tx : ProducerDeath(t) \/ ImmunityOver(t)
               \/ ProcessCrash \/ PowerLoss

Next == Broker \/ Producer \/ Environment

Spec == Init /\ [][Next]_vars

\* What must go on happening for the promises that speak of "in the end": the broker runs its rounds, takes the
\* decisions that arrive and writes their op messages, living producers answer, and no message stays young. It is not
\* assumed that a producer ever decides.
Fairness ==
    /\ WF_vars(RoundStep)
    /\ WF_vars(EndTransaction)
    /\ WF_vars(WriteOp)
    /\ WF_vars(CheckReply)
    /\ \A t \in Tx : WF_vars(ImmunityOver(t))

FairSpec == Spec /\ Fairness

------------------------------------------------------------------------------
(* Promises *)

TypeOK ==
    /\ flushed \in 0..Len(log)
    /\ decision \in [Tx -> {"none", "commit", "rollback"}]
    /\ progress.half >= 1 /\ progress.op >= 1

\* Nothing is in the real topic before the producer decided.
NoHalfVisible == \A t \in Tx : Delivered(t) => decision[t] # "none"

RolledBackNeverVisible == \A t \in Tx : Delivered(t) => decision[t] # "rollback"

CommittedOnce == \A t \in Tx : Cardinality(FinalsOf(t)) <= 1

\* A round will still meet an unfinished half message of t.
StillAhead(t) == \E p \in HalvesOf(t) : log[p].off >= progress.half /\ ~HasOp(log[p].off)

InFlight(t) == \E m \in endNet : m.tx = t

\* A message whose transaction committed is delivered, set aside, or will be met by a round, or its decision
\* is still on its way. (A half message that a power loss took before its flush was never promised.)
CommittedNotForgotten ==
    \A t \in Tx : decision[t] = "commit" /\ HalvesOf(t) # {}
                  => Delivered(t) \/ SetAside(t) \/ StillAhead(t) \/ InFlight(t)

\* A final message is made from a half message of the same transaction, and names it.
FinalFromHalf == \A p \in Positions("final") :
    /\ log[log[p].source].kind = "half"
    /\ log[log[p].source].off = log[p].half
    /\ log[log[p].source].tx = log[p].tx

\* Nothing is set aside that was delivered before. (A commit that comes after it still delivers, rightly.)
NoDiscardFinished == \A p \in Positions("aside"), q \in Positions("final") :
                        log[p].tx = log[q].tx => p < q

\* Nothing is set aside before the producer was asked as often as promised.
AskedBeforeDiscard == \A p \in Positions("aside") : log[p].asked = CheckMax

\* (Written out: a promise must not share the mistakes of what it judges.)
HalfOfOp(o) == LET at == CHOOSE p \in 1..Len(log) : log[p].kind = "op" /\ log[p].off = o IN log[at].half

\* The op progress passes only op messages whose half message the rounds have passed too.
ProgressSound == \A o \in 1..(progress.op - 1) :
                    o <= Count("op") => HalfOfOp(o) < progress.half

\* RocketMQ would pass the copy of an immune message if it had read an op message of the first one. That never
\* succeeds: when it meets the copy, such an op message counts as done already, or has not been read.
ImmunityTestNeverSucceeds ==
    ~(IF AtHalf THEN Current.half # 0 /\ \E r \in round.remove : r.half = Current.half ELSE FALSE)

\* The checks of one message are bounded, so that every message is set aside in the end.
ChecksBounded == \A p \in Positions("half") : log[p].checks <= CheckMax

\* A round makes at most one copy of a half message: it never meets what it appended itself.
CopiesOfRound(t) == {p \in HalvesOf(t) : p > round.start /\ (log[p].checks > 0 \/ log[p].half # 0)}
MetByRound(t)    == {p \in HalvesOf(t) : p <= round.start /\ log[p].off \in round.h0..(round.i - 1)}
OneCheckPerRound == round.on => \A t \in Tx : Cardinality(CopiesOfRound(t)) <= Cardinality(MetByRound(t))

\* What a round believes is true: it knows every op message that it has read, the youngest one for each half message.
RoundSound == round.on =>
    /\ round.i \in round.h0..(Count("half") + 1)
    /\ {r.op : r \in round.remove} \cap round.done = {}
    /\ \A o \in round.done : HalfOfOp(o) < round.i
    /\ \A r \in round.remove : r.half >= round.h0 /\ r.half = HalfOfOp(r.op)
    /\ \A r, s \in round.remove : r.half = s.half => r = s
    /\ \A o \in round.o0..(round.next - 1) :
          \/ o \in round.done
          \/ \E r \in round.remove : r.half = HalfOfOp(o) /\ r.op >= o
          \/ \E u \in round.done : u > o /\ HalfOfOp(u) = HalfOfOp(o)

\* A decision in flight is the producer's, and it commits only what the broker acknowledged.
DecisionsAreTheProducers ==
    /\ \A m \in endNet : m.decision = decision[m.tx]
    /\ \A t \in Tx : decision[t] = "commit" => known[t] # {}

------------------------------------------------------------------------------
(* Promises about steps *)

DecisionsStand == [][\A t \in Tx : decision[t] # "none" => decision'[t] = decision[t]]_vars

\* Whoever is dead sends nothing and decides nothing; of what it left undecided somebody of its group says that it is
\* rolled back.
TheDeadAreSilent == [][\A t \in dead :
    /\ known'[t] = known[t]
    /\ decision'[t] # decision[t] => decision'[t] = "rollback" /\ GroupLives(t)]_vars

\* What is flushed is not lost and does not change.
FlushedStays == [][flushed' >= flushed /\ SubSeq(log', 1, flushed) = SubSeq(log, 1, flushed)]_vars

Grows == Len(log') > Len(log)
Newest == log'[Len(log')]

\* A half message is sent by a living producer that has neither an answer nor a decision. A copy is made of an immune
\* message while it is young, or of another one that the producer is asked about; and no round asks about a half
\* message that was done before the round began, nor before it has read every op message that was there then.
EveryHalfHasAReason == [][Grows /\ Newest.kind = "half" =>
    IF Newest.half = 0 /\ Newest.checks = 0
    THEN happened'.send > happened.send /\ Newest.tx \notin dead /\ decision[Newest.tx] = "none" /\ known[Newest.tx] = {}
    ELSE IF Newest.asked = Current.asked
    THEN Newest.tx \in Immune \cap young
    ELSE /\ Newest.tx \notin young /\ Newest.asked = Current.asked + 1
         /\ [tx |-> Newest.tx, half |-> Newest.off, pos |-> Len(log')] \in checkNet'
         /\ round.empty \/ \E p \in (round.start + 1)..Len(log) : log[p].kind = "op" /\ log[p].off = round.last
         /\ ~\E p \in 1..round.start : log[p].kind = "op" /\ log[p].half = round.i]_vars

\* Nothing is set aside that the round knows to be done.
EveryDiscardHasAReason == [][Grows /\ Newest.kind = "aside" =>
    /\ \A r \in round.remove : r.half # round.i
    /\ FinishedSet => ~\E p \in 1..Len(log) : log[p].kind = "final" /\ log[p].tx = Newest.tx]_vars

\* One round at a time; it reads no more op messages once there were none left, and none because of a half message that
\* is too young to be asked about.
OneRoundAtATime == [][round.on /\ round'.on =>
    /\ round'.start = round.start /\ round'.h0 = round.h0
    /\ round.pulled /\ round.empty => round'.next = round.next
    /\ round.pulled /\ (round'.next # round.next \/ round'.empty # round.empty) => Current.tx \notin young]_vars

\* The faults of this module are faults: what they take is gone.
FaultsHappen == [][
    /\ happened'.loss # happened.loss
       => Cardinality(endNet') + Cardinality(checkNet') < Cardinality(endNet) + Cardinality(checkNet)
    /\ happened'.death # happened.death => dead' # dead
    /\ happened'.abort # happened.abort => round # Idle /\ round' = Idle
    /\ happened'.power # happened.power => flushed' = Len(log')
    /\ happened'.crash # happened.crash \/ happened'.power # happened.power
       => round' = Idle /\ pendingOps' = {} /\ progress' = [half |-> saved.half, op |-> saved.op, at |-> 0]]_vars

------------------------------------------------------------------------------
(* Promises about the end *)

Settled(t) == SetAside(t) \/ Delivered(t) \/ \E p \in HalvesOf(t) : HasOp(log[p].off)

RoundsEnd == round.on ~> ~round.on

EveryHalfDecided == \A t \in Tx : HalvesOf(t) # {} ~> Settled(t)

CommittedVisible == \A t \in Tx : decision[t] = "commit" ~> Delivered(t) \/ SetAside(t)

CommittedVisibleStrict == \A t \in Tx : decision[t] = "commit" ~> Delivered(t)
==============================================================================
