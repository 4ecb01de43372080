------------------------ MODULE HaReplicationPromises ------------------------
(***************************************************************************)
(* What HaReplication promises, and that every change has a cause. The     *)
(* protocol itself reads nothing of this module.                           *)
(***************************************************************************)
EXTENDS HaReplication

\* Safety. These are evaluated in every state, so they take the shortest way.
Roles    == {"master", "slave"}
Lives    == {"up", "down", "gone"}
Statuses == {"unsent", "waiting", "alone", "ok", "no_slave", "slave_timeout", "disk_timeout", "unknown"}
Offsets  == 0..FarAway
Places   == None..FarAway
TypeOK ==
    /\ \A n \in Node : /\ role[n] \in Roles /\ up[n] \in Lives
                      /\ base[n] \in Offsets /\ base[n] % FileSize = 0
                      /\ pushMax[n] \in Offsets
                      /\ link[n] # NoLink => ServingSlave(n) /\ ServingMaster(link[n].to)
    /\ \A m \in Msg : status[m] \in Statuses /\ at[m] \in Places
    /\ \A x \in DOMAIN dead : dead[x] # NoLink => ServingMaster(dead[x].to)

\* Nobody counts as flushed, or really has on disk, what it has not written.
MarksInOrder == \A n \in Node : base[n] <= durable[n] /\ durable[n] <= flushed[n] /\ flushed[n] <= End(n)

\* No log holds a record that nobody sent: every first half is followed by its own second half.
NoInvention ==
    \A n \in Node :
        LET cells == log[n] IN
        \A i \in 1..Len(cells) :
            LET c == cells[i] IN
            IF c % 2 = 0 THEN c = Pad \/ (at[c \div 2] # None /\ (i < Len(cells) => cells[i + 1] = c + 1))
            ELSE c # Hole /\ i > 1 /\ cells[i - 1] = c - 1

\* No log has a hole or a shift: every record lies where its master put it, padding ends files.
SlaveContiguous ==
    \A n \in Node :
        LET cells == log[n] IN
        \A i \in 1..Len(cells) :
            LET c == cells[i] IN
            c % 2 = 0 => LET o == base[n] + i - 1
                         IN  IF c = Pad THEN FileEnd(o) - o < RecordCells + EndBlank ELSE o = at[c \div 2]

\* A slave's log equals the master's at every offset that both hold.
Between(n, from, to) == SubSeq(log[n], from - base[n] + 1, to - base[n])
PrefixReplica ==
    \A s \in Node : s # leader =>
        LET from == Max(base[s], base[leader])
            to   == Min(End(s), End(leader))
        IN  from < to => Between(s, from, to) = Between(leader, from, to)

\* Nobody has more than the master.
SlaveNeverAhead == up[leader] # "gone" => \A s \in Node : End(s) <= End(leader)

\* At a replicated acknowledgement a slave held that very message.
NoFalseAck == falseAcks = {}

\* With sync flush nothing is acknowledged that the acknowledging master could lose by a power loss.
DurableAck ==
    SyncFlush /\ ~promoted /\ up[leader] # "gone" =>
        \A m \in Msg : status[m] = "ok" /\ m \notin retired => HasRecord(leader, m) /\ EndOf(m) <= durable[leader]

\* Every piece in flight lies inside one file.
FrameWithinFile ==
    \A s \in Node : Linked(s) =>
        \A i \in 1..Len(link[s].down) :
            LET f == link[s].down[i] IN f.body # <<>> => f.from + Len(f.body) <= FileEnd(f.from)

\* The reports in flight, and those that were read, were true when they were made.
ReportsHonest ==
    \A s \in Node : Linked(s) => /\ link[s].ack <= End(s)
                                 /\ \A i \in 1..Len(link[s].up) : link[s].up[i] <= End(s)

\* The master's three numbers of a connection, in the order that the code asserts.
LinkInOrder ==
    \A s \in Node : Linked(s) /\ link[s].request # None =>
        /\ link[s].request <= link[s].next
        /\ link[s].ack <= link[s].next
        /\ link[s].next <= End(link[s].to)

\* A slave that is level with its master holds everything that its master holds.
FullCopy == \A s \in Node : End(s) = End(leader) /\ ServingMaster(leader) => base[s] <= base[leader]

\* One master of the name.
OneMaster == Cardinality({n \in Node : ServingMaster(n)}) <= 1

\* The table of promises: does the mode cover what has happened so far?
\*   the first master goes on    what it acknowledged is there, unless it lost power without sync flush
\*   a slave was promoted        what was acknowledged by every slave is there, unless the promoted one
\*                               lost power (its flush is nobody's business) or was emptied
Promised ==
    /\ IF promoted
       THEN /\ SyncRepl
            /\ AckCount >= Cardinality(Node) - 1 \/ PromoteLongest
            /\ leader \notin emptied
            /\ leader \notin lostPower \/ (SyncFlush /\ SlaveFlushesFirst)
       ELSE leader \notin lostPower \/ SyncFlush
    /\ Cardinality({n \in Node : role[n] = "master"}) = 1
Acked(m) == status[m] = "ok" /\ m \notin retired /\ m \notin falseAcks

\* What was acknowledged is never lost, whatever happens: the wish.
AckedNeverLost == \A m \in Msg : Acked(m) /\ up[leader] # "gone" => CanRead(leader, m)
\* What was acknowledged survives every fault that the mode covers: the promise.
AckedSurvives == Promised => AckedNeverLost
\* What was acknowledged is in the log of a promoted slave.
AckedAfterPromote == promoted => AckedNeverLost
\* With sync replication and at most one fault an acknowledged message is somewhere.
AckedSomewhere == SyncRepl /\ faults <= 1 => \A m \in Msg : Acked(m) => \E n \in Node : CanRead(n, m)

\* Recovery adds nothing: what was cut off, or lay behind the end, stays away (W-A12).
NoGhost == [][\A n \in Node : up[n] = "down" /\ up'[n] = "up" => Len(log'[n]) <= Len(log[n])]_vars

\* What a consumer could see on the master stays, except for retention, a lost disk and failover (W-A8).
Visible(m) == HasRecord(leader, m) /\ (ServeFlushedOnly => EndOf(m) <= flushed[leader])
VisibleStays == [][\A m \in Msg : Visible(m) /\ leader' = leader /\ up'[leader] # "gone" => Visible(m)' \/ m \in retired']_vars

\* Double entry: whatever changes, changes for a reason that stands elsewhere in the state. These say nothing
\* new; they are here so that no guard of an action can be lost unnoticed.
Faulty == faults' = faults + 1
Served(n) == UNION {{IF AckPerConnection THEN link[s].ack ELSE pushMax[n] : s \in {s \in Node : link[s].to = n}},
                    {IF AckPerConnection THEN dead[x].ack ELSE pushMax[n] : x \in {x \in DOMAIN dead : dead[x].to = n}}}
PutsHaveCauses == [][\A m \in Msg : (status'[m] # status[m] \/ at'[m] # at[m] \/ retired' # retired) =>
    /\ status[m] \notin {"unsent", "waiting", "alone"} => status'[m] = status[m]
    /\ status[m] = "unsent" => status'[m] \in {"unsent", "waiting", "alone"}
    /\ status[m] # "unsent" => at'[m] = at[m]
    /\ status'[m] = "alone" /\ status[m] = "unsent" => SyncRepl
    /\ status'[m] # status[m] =>
        CASE status'[m] \in {"waiting", "alone"} ->
                /\ at'[m] # None
                /\ \E n \in Node :
                    /\ ServingMaster(n) /\ log'[n] # log[n]
                    /\ SyncRepl => (status'[m] = "waiting") = (Served(n) # {} /\ \E mark \in Served(n) \cup {0} : at'[m] + RecordCells - mark < FallBehind)
          [] status'[m] = "ok" -> /\ status[m] = "waiting"
                                  /\ \E n \in Node : ServingMaster(n) /\ HasRecord(n, m) /\ (SyncFlush => EndOf(m) <= flushed[n])
                                  /\ SyncRepl => \E n \in Node : Replicated(n, EndOf(m))
          [] status'[m] = "no_slave" -> status[m] = "alone"
          [] status'[m] = "slave_timeout" -> status[m] = "waiting" /\ SyncRepl /\ \A n \in Node : ~Replicated(n, EndOf(m))
          [] status'[m] = "disk_timeout" -> status[m] = "waiting" /\ SyncFlush /\ \A n \in Node : ServingMaster(n) => EndOf(m) > flushed[n]
          [] status'[m] = "unknown" -> Faulty
          [] OTHER -> FALSE
    /\ m \in retired' \ retired => Faulty /\ ~Waiting(m) /\ HasRecord(leader, m)]_vars
LogsHaveCauses == [][<<leader, role, up, log, base, flushed, durable>>' # <<leader, role, up, log, base, flushed, durable>> => \A n \in Node :
    /\ up'[n] # "up" /\ up[n] = "up" => Faulty
    /\ up[n] # "up" /\ up'[n] = "up" => flushed'[n] = End(n)' /\ ~Faulty /\ (up[n] = "gone" => role[n] = "slave")
    /\ up[n] = "gone" => up'[n] = "gone" \/ role'[n] = "slave"
    /\ role'[n] # role[n] => Faulty /\ leader' # leader
    /\ leader' # leader => up[leader] # "up" /\ up[leader'] = "up"
    /\ base'[n] # base[n] =>
        \/ Faulty
        \/ base'[n] = 0 /\ n \in emptied'
        \/ End(n) = 0 /\ Linked(n) /\ link[n].down # <<>> /\ base'[n] = FileStart(Head(link[n].down).from)
    /\ log'[n] # log[n] /\ up[n] = "up" /\ ~Faulty /\ n \notin emptied' \ emptied =>
        LET added == Len(log'[n]) - Len(log[n]) IN
        /\ added > 0 /\ SubSeq(log'[n], 1, Len(log[n])) = log[n]
        /\ IF role[n] = "master" THEN \E m \in Msg : status[m] = "unsent" /\ status'[m] # "unsent" /\ at'[m] = End(n)' - RecordCells
           ELSE /\ Linked(n) /\ link[n].down # <<>> /\ SubSeq(log'[n], Len(log[n]) + 1, Len(log'[n])) = Head(link[n].down).body
                /\ link'[n] # NoLink /\ (End(n) = Head(link[n].down).from \/ End(n) = 0)
    /\ flushed'[n] > flushed[n] /\ up[n] = "up" /\ ~Faulty => durable'[n] = flushed'[n] \/ base'[n] # base[n]
    /\ flushed'[n] < flushed[n] => Faulty \/ n \in emptied'
    /\ durable'[n] > durable[n] => up'[n] = "up" /\ (up[n] = "up" \/ FlushOnRecovery)]_vars
LinksHaveCauses == [][\A s \in Node : (link'[s] # link[s] \/ dead'[s] # dead[s]) =>
    /\ link'[s] # NoLink /\ link[s] = NoLink => ServingSlave(s) /\ link'[s] = FreshLink(link'[s].to) /\ ServingMaster(link'[s].to)
    /\ link[s] # NoLink /\ link'[s] # NoLink =>
        /\ link'[s].to = link[s].to
        /\ link[s].request # None => link'[s].request = link[s].request /\ link'[s].next >= link[s].next /\ link'[s].ack >= link[s].ack
        /\ Len(link'[s].up) > Len(link[s].up) => link'[s].up = Append(link[s].up, End(s)) /\ (SlaveFlushesFirst => flushed[s] = End(s))
        /\ Len(link'[s].up) < Len(link[s].up) => link'[s].request # None
        /\ link'[s].ack # link[s].ack => Len(link'[s].up) < Len(link[s].up) /\ ~(RequestIsNoAck /\ link[s].request = None)
        /\ Len(link'[s].down) > Len(link[s].down) =>
            LET f == link'[s].down[Len(link'[s].down)] IN f.from = link[s].next /\ link'[s].next = f.from + Len(f.body)
        /\ Len(link'[s].down) <= Chan /\ Len(link'[s].up) <= Chan
    /\ dead[s] = NoLink /\ dead'[s] # NoLink => Faulty /\ link[s] # NoLink /\ link'[s] = NoLink
    /\ link[s] # NoLink /\ link'[s] = NoLink =>
        \/ Faulty
        \/ s \in emptied'
        \/ link[s].down # <<>> /\ Head(link[s].down).from # End(s)
        \/ \E k \in 1..Len(link[s].up) : link[s].up[k] > End(link[s].to)]_vars

------------------------------------------------------------------------------
\* Liveness: faults and messages are finite.
CaughtUp == \A s \in Node : role[s] = "slave" => End(s) = End(leader) /\ base[s] <= base[leader]
CatchUp  == <>[]CaughtUp
PutResolves == \A m \in Msg : Waiting(m) ~> ~Waiting(m)

------------------------------------------------------------------------------
\* What a client sees: the messages that it can read, and the answers.
Answer(m) == CASE status[m] = "unsent" -> "unsent"
               [] Waiting(m) -> "pending"
               [] status[m] = "ok" /\ m \notin falseAcks -> "ok"
               [] OTHER -> "no_promise"
Abstract == INSTANCE HaReplicationAbstract WITH
    Msg <- Msg,
    readable <- Readable(leader),
    answer <- [m \in Msg |-> Answer(m)],
    expired <- retired,
    covered <- Promised /\ up[leader] # "gone"
Refines == Abstract!Spec
==============================================================================
