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
                      /\ link[n] # NoLink => role[n] = "slave" /\ up[n] = "up" /\ role[link[n].to] = "master" /\ up[link[n].to] = "up"
    /\ \A m \in Msg : status[m] \in Statuses /\ at[m] \in Places
    /\ \A x \in DOMAIN dead : dead[x] # NoLink => role[dead[x].to] = "master" /\ up[dead[x].to] = "up"
    /\ faults <= MaxFaults

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

\* No log is longer than the master's.
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

\* The pieces in flight continue the slave's log without a gap, up to where the master will go on. So a slave never has
\* to close a connection because of a piece; RocketMQ looks nevertheless.
PiecesFit ==
    \A s \in Node : link[s] # NoLink /\ link[s].down # <<>> =>
        LET down == link[s].down IN
        /\ base[s] + Len(log[s]) # 0 => down[1].from = base[s] + Len(log[s])
        /\ \A i \in 1..Len(down) : down[i].from + Len(down[i].body) = IF i < Len(down) THEN down[i + 1].from ELSE link[s].next

\* A slave that is level with its master holds everything that its master holds.
FullCopy == \A s \in Node : End(s) = End(leader) /\ ServingMaster(leader) => base[s] <= base[leader]

\* The broker name has one master.
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

\* What was acknowledged is never lost, whatever happens: what one would wish for.
AckedNeverLost == \A m \in Msg : Acked(m) /\ up[leader] # "gone" => CanRead(leader, m)
\* What was acknowledged survives every fault that the mode covers: the promise.
AckedSurvives == Promised => AckedNeverLost
\* What was acknowledged is in the log of a promoted slave.
AckedAfterPromote == promoted => AckedNeverLost
\* With sync replication and at most one fault an acknowledged message is somewhere.
AckedSomewhere == SyncRepl /\ faults <= 1 => \A m \in Msg : Acked(m) => \E n \in Node : CanRead(n, m)

\* Recovery adds nothing: what was cut off, or lay past the end, stays away (W-A12).
NoGhost == [][\A n \in Node : up[n] = "down" /\ up'[n] = "up" => Len(log'[n]) <= Len(log[n])]_vars

\* What a consumer could see on the master stays, except for retention, a lost disk and failover (W-A8).
Visible(m) == HasRecord(leader, m) /\ (ServeFlushedOnly => EndOf(m) <= flushed[leader])
VisibleStays == [][\A m \in Msg : Visible(m) /\ leader' = leader /\ up'[leader] # "gone" => Visible(m)' \/ m \in retired']_vars

\* Double entry: whatever changes, changes for a reason recorded elsewhere in the state. These say nothing
\* new; they are here so that no guard of an action can be lost unnoticed, so they write out what the actions
\* have helpers for.
Faulty        == faults' = faults + 1
MasterUp(n)   == role[n] = "master" /\ up[n] = "up"
SlaveUp(s)    == role[s] = "slave" /\ up[s] = "up"
Pending(m)    == status[m] = "waiting" \/ status[m] = "alone"
LogEnd(n)     == base[n] + Len(log[n])
Written(n, m) == /\ base[n] <= at[m] /\ at[m] + 2 <= LogEnd(n)
                 /\ SubSeq(log[n], at[m] - base[n] + 1, at[m] - base[n] + 2) = <<FirstHalf(m), SecondHalf(m)>>
\* What n knows of its slaves: who has reported at least o, and the best report of those that it believes in.
Reporters(n, o) == {x \in Node : link[x] # NoLink /\ link[x].to = n /\ o <= link[x].ack}
                   \cup {x \in DOMAIN dead : dead[x] # NoLink /\ dead[x].to = n /\ o <= dead[x].ack}
Enough(n, o)    == IF AckPerConnection THEN AckCount <= Cardinality(Reporters(n, o)) ELSE o <= pushMax[n]
Served(n) == UNION {{IF AckPerConnection THEN link[s].ack ELSE pushMax[n] : s \in {s \in Node : link[s].to = n}},
                    {IF AckPerConnection THEN dead[x].ack ELSE pushMax[n] : x \in {x \in DOMAIN dead : dead[x].to = n}}}

PutsHaveCauses == [][\A m \in Msg : (status'[m] # status[m] \/ at'[m] # at[m] \/ retired' # retired \/ falseAcks' # falseAcks) =>
    /\ status[m] \notin {"unsent", "waiting", "alone"} => status'[m] = status[m]
    /\ status[m] = "unsent" => status'[m] \in {"unsent", "waiting", "alone"}
    /\ status[m] # "unsent" => at'[m] = at[m]
    /\ m \in falseAcks' \ falseAcks => status'[m] = "ok" /\ status[m] # "ok" /\ SyncRepl
    /\ status'[m] # status[m] =>
        CASE status'[m] \in {"waiting", "alone"} ->
                /\ status[m] = "unsent" /\ \A k \in 1..(m - 1) : status[k] # "unsent"
                /\ at'[m] # None
                /\ status'[m] = "alone" => SyncRepl
                /\ \E n \in Node :
                    /\ MasterUp(n) /\ log'[n] # log[n]
                    /\ SyncRepl => (status'[m] = "waiting") = (Served(n) # {} /\ \E mark \in Served(n) \cup {0} : at'[m] + RecordCells - mark < FallBehind)
          [] status'[m] = "ok" ->
                /\ status[m] = "waiting"
                /\ \E n \in Node :
                    /\ MasterUp(n) /\ Written(n, m)
                    /\ SyncFlush => at[m] + RecordCells <= flushed[n]
                    /\ SyncRepl => Enough(n, at[m] + RecordCells)
                    /\ SyncRepl /\ m \notin falseAcks' =>
                        \E s \in Node : s # n /\ (Written(s, m) \/ (dead[s] # NoLink /\ dead[s].to = n /\ at[m] + RecordCells <= dead[s].ack))
          [] status'[m] = "no_slave" -> status[m] = "alone" /\ \E n \in Node : MasterUp(n) /\ Written(n, m)
          [] status'[m] = "slave_timeout" ->
                status[m] = "waiting" /\ SyncRepl /\ \E n \in Node : MasterUp(n) /\ Written(n, m) /\ ~Enough(n, at[m] + RecordCells)
          [] status'[m] = "disk_timeout" ->
                /\ status[m] = "waiting" /\ SyncFlush
                /\ \E n \in Node : /\ MasterUp(n) /\ Written(n, m) /\ flushed[n] < at[m] + RecordCells
                                   /\ SyncRepl => Enough(n, at[m] + RecordCells)
          [] status'[m] = "unknown" ->
                Faulty /\ IF up' = up THEN "LoseAnswer" \in Faults /\ link' = link /\ dead' = dead
                          ELSE \E n \in Node : MasterUp(n) /\ up'[n] # "up" /\ Written(n, m)
          [] OTHER -> FALSE
    /\ m \in retired' \ retired => Faulty /\ ~Pending(m) /\ \E n \in Node : base'[n] > base[n] /\ Written(n, m) /\ at[m] < base'[n]]_vars

LogsHaveCauses == [][<<leader, role, up, log, base, flushed, durable>>' # <<leader, role, up, log, base, flushed, durable>> => \A n \in Node :
    /\ role'[n] # role[n] => Faulty /\ leader' # leader
    /\ leader' # leader => up[leader] # "up" /\ SlaveUp(leader') /\ role'[leader'] = "master" /\ promoted' /\ Faulty
    /\ base'[n] # base[n] =>
        \/ Faulty /\ MasterUp(n) /\ base'[n] = base[n] + FileSize /\ base'[n] < LogEnd(n) /\ log'[n] = SubSeq(log[n], FileSize + 1, Len(log[n]))
        \/ base'[n] = 0 /\ n \in emptied'
        \/ SlaveUp(n) /\ LogEnd(n) = 0 /\ Linked(n) /\ link[n].down # <<>> /\ base'[n] = FileStart(Head(link[n].down).from)
    /\ log'[n] # log[n] /\ up[n] = "up" /\ up'[n] = "up" /\ leader' = leader /\ base'[n] <= base[n] /\ ~(log'[n] = <<>> /\ n \in emptied') =>
        LET added == Len(log'[n]) - Len(log[n]) IN
        /\ added > 0 /\ SubSeq(log'[n], 1, Len(log[n])) = log[n]
        /\ IF role[n] = "master" THEN \E m \in Msg : status[m] = "unsent" /\ status'[m] # "unsent" /\ at'[m] = LogEnd(n)' - RecordCells
           ELSE /\ Linked(n) /\ link[n].down # <<>> /\ SubSeq(log'[n], Len(log[n]) + 1, Len(log'[n])) = Head(link[n].down).body
                /\ link'[n] # NoLink /\ link'[n].down = Tail(link[n].down) /\ (LogEnd(n) = Head(link[n].down).from \/ LogEnd(n) = 0)
        /\ stale'[n] = SubSeq(stale[n], added + 1, Len(stale[n]))
    /\ flushed'[n] > flushed[n] => up'[n] = "up" /\ (up[n] = "up" /\ ~Faulty => durable'[n] = flushed'[n] \/ base'[n] # base[n])
    /\ flushed'[n] < flushed[n] => Faulty \/ n \in emptied'
    /\ durable'[n] > durable[n] =>      \* what is believed to be flushed is not flushed again
        up'[n] = "up" /\ IF up[n] = "up" /\ leader' = leader THEN flushed'[n] > flushed[n] \/ base'[n] # base[n] ELSE FlushOnRecovery]_vars

\* The end of a process, of a machine and of a disk, and what a start finds.
FallsHaveCauses == [][<<up, stale, lostPower, emptied, faults, leader>>' # <<up, stale, lostPower, emptied, faults, leader>> => \A n \in Node :
    /\ faults' <= MaxFaults
    /\ up[n] = "up" /\ up'[n] # "up" =>
        /\ Faulty /\ pushMax'[n] = 0 /\ role'[n] = role[n]
        /\ role[n] = "master" => \A m \in Msg : Written(n, m) => status'[m] \notin {"waiting", "alone"}
        /\ up'[n] = "down" => log'[n] = log[n] \/ n \in lostPower'
        /\ up'[n] = "gone" => role[n] = "master" /\ n \in emptied'
    /\ up[n] = "gone" /\ up'[n] # "gone" => role[n] = "slave" /\ up'[n] = "up"
    /\ n \in lostPower' \ lostPower =>
        /\ Faulty /\ up[n] # "gone" /\ up'[n] = "down" /\ Len(log'[n]) <= Len(log[n]) /\ log'[n] = SubSeq(log[n], 1, Len(log'[n]))
        /\ durable'[n] = durable[n] /\ flushed'[n] = durable[n] /\ durable[n] <= LogEnd(n)'
        /\ IF stale'[n] = <<>> THEN TRUE
           ELSE /\ PagesSurvive /\ Head(stale'[n]) = Hole
                /\ LET disk == log[n] \o stale[n]
                   IN  Tail(stale'[n]) # <<>> /\ Tail(stale'[n]) = SubSeq(disk, Len(log'[n]) + 2, Len(disk))
        /\ role[n] = "slave" /\ link[n] # NoLink => dead'[n] = [to |-> link[n].to, ack |-> link[n].ack]
    /\ n \in emptied' \ emptied =>
        /\ log'[n] = <<>> /\ stale'[n] = <<>> /\ base'[n] = 0 /\ flushed'[n] = 0 /\ durable'[n] = 0
        /\ \/ up'[n] = "gone" /\ Faulty
           \/ n = leader /\ leader' # leader /\ OldMasterBecomes = "wiped"
           \/ /\ WipeStuck /\ SlaveUp(n) /\ MasterUp(leader) /\ link'[n] = NoLink /\ ~Faulty
              /\ LET asked == IF link[n] = NoLink THEN FALSE ELSE link[n].next # None
                     next  == IF asked THEN link[n].next ELSE LogEnd(n)
                 IN  (asked \/ next # 0) /\ (next < base[leader] \/ next > LogEnd(leader))
    /\ (up[n] # "up" /\ up'[n] = "up") \/ (leader' # leader /\ leader' = n) =>
        LET disk == log[n] \o stale[n]
            kept == Len(log'[n])
        IN  /\ log'[n] = SubSeq(disk, 1, kept) /\ base'[n] = base[n]
            /\ kept > 0 => ~(log'[n][kept] > 1 /\ log'[n][kept] % 2 = 0)
            /\ kept < Len(disk) => ~(disk[kept + 1] = Pad \/ (disk[kept + 1] % 2 = 0 /\ kept + 1 < Len(disk) /\ disk[kept + 2] = disk[kept + 1] + 1))
            /\ stale'[n] = IF ZeroTailOnTruncate THEN <<>> ELSE SubSeq(disk, kept + 1, Len(disk))
            /\ flushed'[n] = LogEnd(n)'
            /\ durable'[n] = IF FlushOnRecovery \/ durable[n] > flushed'[n] THEN flushed'[n] ELSE durable[n]
    /\ leader' # leader /\ n # leader' => IF n = leader /\ OldMasterBecomes = "wiped" THEN n \in emptied'
                                          ELSE UNCHANGED <<log[n], base[n], flushed[n], durable[n], stale[n]>>
    /\ leader' # leader => role' = [x \in Node |-> IF x = leader' THEN "master" ELSE IF x = leader /\ OldMasterBecomes # "master" THEN "slave" ELSE role[x]]
    /\ stale'[n] # stale[n] => Faulty \/ log'[n] # log[n] \/ up'[n] # up[n] \/ n \in emptied']_vars

\* The numbers of a connection, live or left over.
LinksHaveCauses == [][<<link, dead, pushMax>>' # <<link, dead, pushMax>> => \A s \in Node :
    /\ link'[s] # NoLink /\ link[s] = NoLink => SlaveUp(s) /\ link'[s] = FreshLink(link'[s].to) /\ MasterUp(link'[s].to)
    /\ link[s] # NoLink /\ link'[s] # NoLink =>
        /\ link'[s].to = link[s].to
        /\ link[s].request # None => link'[s].request = link[s].request /\ link'[s].next >= link[s].next /\ link'[s].ack >= link[s].ack
        /\ Len(link'[s].up) > Len(link[s].up) => link'[s].up = Append(link[s].up, LogEnd(s)) /\ (SlaveFlushesFirst => flushed[s] = LogEnd(s))
        /\ Len(link'[s].up) < Len(link[s].up) =>
            LET n     == link[s].to
                v     == link[s].up[Len(link[s].up) - Len(link'[s].up)]
                first == link[s].request = None
            IN  /\ link'[s].up = SubSeq(link[s].up, Len(link[s].up) - Len(link'[s].up) + 1, Len(link[s].up))
                /\ link'[s].request = (IF first THEN v ELSE link[s].request)
                /\ link'[s].next = (IF ~first THEN link[s].next ELSE IF v # 0 THEN v ELSE IF StartAtMin THEN base[n] ELSE LogEnd(n) - (LogEnd(n) % FileSize))
                /\ v > LogEnd(n) => first /\ ~ValidateFirstReport
                /\ IF first /\ RequestIsNoAck THEN link'[s].ack = link[s].ack /\ pushMax' = pushMax
                   ELSE link'[s].ack = v /\ (IF AckPerConnection THEN pushMax' = pushMax ELSE pushMax'[n] >= v /\ pushMax'[n] \in {v, pushMax[n]})
        /\ link'[s].ack # link[s].ack => Len(link'[s].up) < Len(link[s].up)
        /\ Len(link'[s].down) > Len(link[s].down) =>
            LET f == link'[s].down[Len(link'[s].down)] IN
            /\ f.from = link[s].next /\ link'[s].next = f.from + Len(f.body) /\ f.from # None
            /\ f.body # <<>> => base[link[s].to] <= f.from /\ link'[s].next <= (IF SendFlushedOnly THEN flushed[link[s].to] ELSE LogEnd(link[s].to))
        /\ Len(link'[s].down) < Len(link[s].down) => link'[s].down = Tail(link[s].down) /\ SlaveUp(s) /\ LogEnd(s)' = Head(link[s].down).from + Len(Head(link[s].down).body)
        /\ Len(link'[s].down) <= Chan /\ Len(link'[s].up) <= Chan
    /\ link[s] # NoLink /\ link'[s] = NoLink =>
        /\ \/ Faulty /\ link[s].to \in Node
           \/ s \in emptied'
           \/ link[s].down # <<>> /\ Head(link[s].down).from # LogEnd(s) /\ LogEnd(s) # 0 /\ log'[s] = log[s]
           \/ \E k \in 1..Len(link[s].up) : link[s].up[k] > LogEnd(link[s].to) /\ (link[s].request # None \/ ValidateFirstReport)
        /\ pushMax'[link[s].to] \in {pushMax[link[s].to], 0}
    /\ pushMax'[s] # pushMax[s] =>
        \/ pushMax'[s] = 0 /\ up'[s] # "up"
        \/ ~AckPerConnection /\ pushMax'[s] > pushMax[s] /\ \E x \in Node : link[x] # NoLink /\ link[x].to = s /\ Len(link'[x].up) < Len(link[x].up)
        \/ ~AckPerConnection /\ pushMax'[s] > pushMax[s] /\ dead'[Stray] # NoLink /\ dead'[Stray].to = s /\ dead'[Stray].ack = pushMax'[s] /\ Faulty
    /\ dead[s] = NoLink /\ dead'[s] # NoLink => Faulty /\ link[s] # NoLink /\ link'[s] = NoLink /\ dead'[s] = [to |-> link[s].to, ack |-> link[s].ack]
    /\ dead[s] # NoLink /\ dead'[s] # NoLink /\ dead'[s] # dead[s] => Faulty /\ s \in lostPower'
    /\ dead[Stray] = NoLink /\ dead'[Stray] # NoLink =>
        /\ Faulty /\ MasterUp(dead'[Stray].to)
        /\ ValidateFirstReport => dead'[Stray].ack <= LogEnd(dead'[Stray].to)
        /\ (dead'[Stray].ack = None) = RequestIsNoAck
        /\ ~RequestIsNoAck /\ ~AckPerConnection => dead'[Stray].ack <= pushMax'[dead'[Stray].to]
    /\ dead[Stray] # NoLink /\ dead'[Stray] # NoLink => dead'[Stray] = dead[Stray]]_vars

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
