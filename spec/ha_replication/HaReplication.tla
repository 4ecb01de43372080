---------------------------- MODULE HaReplication ----------------------------
(***************************************************************************)
(* A master copies its commit log to its slaves over one TCP connection    *)
(* per slave; a producer waits for the disk, for a slave, for both or for  *)
(* nothing, depending on the flush and replication mode of the master.     *)
(*                                                                         *)
(* Modelled: the log as bytes, coarsely (a record has two halves, so that  *)
(* frames, crashes and power losses can cut one); files with padding at    *)
(* their end; what is written, what is believed flushed and what is really *)
(* durable; stale bytes past the end of the log; connections that are FIFO *)
(* and lose everything in flight when they break, with a master that       *)
(* notices late; reports that are a request first and acknowledgements     *)
(* afterwards; the shared high-water mark; heartbeats; strangers on the    *)
(* port; answers that a producer never hears; crashes, power loss, disk    *)
(* loss, retention, operators who promote a slave or empty it; any number  *)
(* of slaves; two masters of one name, and slaves that go to either.       *)
(*                                                                         *)
(* Left out: time (a timeout may always happen while its condition lasts), *)
(* so W-A13 (a silent master is noticed late) has no trace here; messages  *)
(* that ask for no wait (they carry no promise); a producer that sends     *)
(* again (W-A9: to the broker that is another message) and the metadata    *)
(* that slaves poll (W-A10); flushes that fail (W-A14) and appends that a  *)
(* crash cuts (see StoreRecovery); appends of a slave that fail (in        *)
(* MCHaReplicationAppendFails); the transient buffer pool; slaves of       *)
(* slaves; retention on a slave; the race in which offset 0 is asked of a  *)
(* master that has just removed it; the consume queues. A report that is   *)
(* read after its connection broke could have been read before, so what is *)
(* in flight on a broken connection is simply gone.                        *)
(*                                                                         *)
(* Every repair below is a switch: FALSE (or 1, "master") is RocketMQ      *)
(* 4.9.8, any other value repairs one weak point. No repair changes a byte *)
(* on the wire. The reference has no replication yet; the comment of an    *)
(* action ends with the name that its step function will have. Weak points *)
(* are cited by their names W-A1 .. W-A14 of the explanation page.         *)
(* Read from: HAService, HAConnection, HAService.HAClient,                 *)
(* GroupTransferService, CommitLog and MappedFileQueue of RocketMQ 4.9.8.  *)
(***************************************************************************)
EXTENDS Integers, Sequences, FiniteSets

CONSTANTS
    Node,                \* the brokers of one broker name
    FirstMaster,         \* who is master at the beginning
    Stray,               \* somebody on the port who is not one of our slaves
    Nobody,              \* the other end of no connection
    MaxMsgs,             \* messages that producers send
    MaxFaults,           \* how many of the actions named in Faults may happen
    Faults,              \* names of the environment's actions that may happen
    FileSize,            \* cells in a commit log file (a record takes two)
    Chan,                \* frames, and reports, in flight on a connection
    FallBehind,          \* haSlaveFallbehindMax, in cells
    SyncFlush,           \* flushDiskType = SYNC_FLUSH
    SyncRepl,            \* brokerRole = SYNC_MASTER
    PagesSurvive,        \* a power loss may spare pages after a lost one
    \* Repairs. FALSE, 1, "master": 4.9.8 as it is.
    SendFlushedOnly,     \* replicate only what is believed flushed            (W-A1, W-A3, W-A6)
    FlushOnRecovery,     \* recovery flushes what it found before believing it (W-A1)
    ValidateFirstReport, \* refuse a first report beyond the end of the log    (W-A2)
    RequestIsNoAck,      \* a first report asks, and acknowledges nothing      (W-A2)
    AckPerConnection,    \* trust the marks of live connections only           (W-A2)
    AckCount,            \* how many slaves must hold an acknowledged record   (W-A4)
    WipeStuck,           \* an operator empties a slave that cannot follow     (W-A5)
    StartAtMin,          \* an empty slave begins at the oldest file           (W-A7)
    ServeFlushedOnly,    \* consumers see flushed records only                 (W-A8)
    OldMasterBecomes,    \* after Promote: "master", "slave" or "wiped"        (W-A11)
    PromoteLongest,      \* promote only a slave that no other is ahead of     (W-A4)
    ZeroTailOnTruncate,  \* recovery zeroes what it cuts off                   (W-A12)
    SlaveFlushesFirst    \* a slave flushes before it reports

VARIABLES
    role,      \* role[n]: "master" or "slave"
    up,        \* up[n]: "up", "down" (restarts on its disk) or "gone" (disk lost)
    log,       \* log[n]: the cells of n's commit log, from base[n] on
    base,      \* base[n]: offset of the first file that n holds
    flushed,   \* flushed[n]: offset up to which n believes that its log is flushed
    durable,   \* durable[n]: offset up to which a power loss takes nothing
    stale,     \* stale[n]: old cells on n's disk past the end of its log
    link,      \* link[s]: s's connection to a master, or NoLink
    dead,      \* dead[x]: a connection that only the master still believes in, or NoLink
    pushMax,   \* pushMax[n]: the largest report that n has read since its start
    status,    \* status[m]: what the producer of m knows
    at,        \* at[m]: where the master put m
    leader,    \* the master that clients find (history: the last promoted one)
    promoted,  \* history: whether a slave was ever promoted
    lostPower, \* history: who has lost power
    emptied,   \* history: who has lost its disk or was emptied
    retired,   \* history: messages removed by retention
    falseAcks, \* history: messages acknowledged as replicated that no slave held
    faults     \* how many of Faults have happened

nodeVars == <<role, up, log, base, flushed, durable, stale>>
linkVars == <<link, dead, pushMax>>
putVars  == <<status, at>>
histVars == <<leader, promoted, lostPower, emptied, retired, falseAcks, faults>>
vars == <<role, up, log, base, flushed, durable, stale, link, dead, pushMax, status, at,
          leader, promoted, lostPower, emptied, retired, falseAcks, faults>>

Msg    == 1..MaxMsgs
None   == -1
NoLink == [to |-> Nobody]
Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b

------------------------------------------------------------------------------
\* Cells: a record is a first half and a second half; Pad fills the end of a file; Hole is what a
\* power loss leaves of a page that was not written back.
Pad  == 0
Hole == 1
FirstHalf(m)  == 2 * m
SecondHalf(m) == 2 * m + 1
RecordCells   == 2
EndBlank      == 1          \* a file always keeps room for the padding's own header
IsFirst(c)    == c > 1 /\ c % 2 = 0
IsSecond(c)   == c > 1 /\ c % 2 = 1

End(n)         == base[n] + Len(log[n])     \* `max` of a broker
CellAt(n, o)   == log[n][o - base[n] + 1]
Holds(n, o)    == base[n] <= o /\ o < End(n)
FileStart(o)   == o - (o % FileSize)
FileEnd(o)     == FileStart(o) + FileSize
EndOf(m)       == at[m] + RecordCells
HasRecord(n, m) ==
    /\ Holds(n, at[m]) /\ Holds(n, at[m] + 1)        \* nobody holds None
    /\ CellAt(n, at[m]) = FirstHalf(m) /\ CellAt(n, at[m] + 1) = SecondHalf(m)

\* How many of the cells recovery accepts: complete records and padding, up to the first other thing. (A second half
\* is never that: before it is its own first half, or something that is broken already.)
Whole(cells, i) ==
    \/ cells[i] = Pad
    \/ IsFirst(cells[i]) /\ i < Len(cells) /\ cells[i + 1] = cells[i] + 1
    \/ IsSecond(cells[i])
ValidLen(cells) ==
    LET broken == {i \in 1..Len(cells) : ~Whole(cells, i)}
    IN  IF broken = {} THEN Len(cells) ELSE (CHOOSE i \in broken : \A j \in broken : i <= j) - 1

\* What a consumer can read from n, in order. A dispatcher stops where recovery would.
Readable(n) ==
    LET firsts == SelectSeq(SubSeq(log[n], 1, ValidLen(log[n])), IsFirst)
    IN  [i \in 1..Len(firsts) |-> firsts[i] \div 2]
CanRead(n, m) == HasRecord(n, m) /\ EndOf(m) - base[n] <= ValidLen(log[n])

\* Cells that are written over the stale ones; whatever lies further on stays.
StaleAfter(n, written) == SubSeq(stale[n], written + 1, Len(stale[n]))

------------------------------------------------------------------------------
\* Connections. request, next and ack are the master's three numbers; down and up carry the frames
\* and the reports in flight.
FreshLink(n) == [to |-> n, request |-> None, next |-> None, ack |-> None, down |-> <<>>, up |-> <<>>]
Linked(s)    == link[s] # NoLink
Closed(s)    == [link EXCEPT ![s] = NoLink]
\* The master's end of a connection whose other end is gone: it keeps counting it, and its mark.
Leftover(s)  == [to |-> link[s].to, ack |-> link[s].ack]

Connections(n) == Cardinality({s \in Node : link[s].to = n}) + Cardinality({x \in DOMAIN dead : dead[x].to = n})
Marks(n)       == {link[s].ack : s \in {t \in Node : link[t].to = n}} \cup {dead[x].ack : x \in {y \in DOMAIN dead : dead[y].to = n}}
\* Whose mark, live or left over, covers the offset o.
Backers(n, o)  == {x \in DOMAIN dead : (dead[x].to = n /\ dead[x].ack >= o) \/ (x \in Node /\ (IF link[x].to = n THEN link[x].ack >= o ELSE FALSE))}
Mark(n)        == IF AckPerConnection
                  THEN CHOOSE k \in Marks(n) \cup {0} : \A j \in Marks(n) \cup {0} : j <= k
                  ELSE pushMax[n]
Replicated(n, o) == IF AckPerConnection THEN Cardinality(Backers(n, o)) >= AckCount ELSE pushMax[n] >= o
\* isSlaveOK: somebody is connected, and the best mark is not too far behind.
SlaveOk(n, o)    == Connections(n) > 0 /\ o - Mark(n) < FallBehind
\* How far the writer of a connection may read.
SendLimit(n)     == IF SendFlushedOnly THEN flushed[n] ELSE End(n)

ServingMaster(n) == role[n] = "master" /\ up[n] = "up"
ServingSlave(s)  == role[s] = "slave" /\ up[s] = "up"
Waiting(m)       == status[m] \in {"waiting", "alone"}
Fault(name)      == faults < MaxFaults /\ name \in Faults

Init ==
    /\ role = [n \in Node |-> IF n = FirstMaster THEN "master" ELSE "slave"]
    /\ up = [n \in Node |-> "up"]
    /\ log = [n \in Node |-> <<>>]
    /\ base = [n \in Node |-> 0]
    /\ flushed = [n \in Node |-> 0]
    /\ durable = [n \in Node |-> 0]
    /\ stale = [n \in Node |-> <<>>]
    /\ link = [n \in Node |-> NoLink]
    /\ dead = [x \in Node \cup {Stray} |-> NoLink]
    /\ pushMax = [n \in Node |-> 0]
    /\ status = [m \in Msg |-> "unsent"]
    /\ at = [m \in Msg |-> None]
    /\ leader = FirstMaster
    /\ promoted = FALSE
    /\ lostPower = {} /\ emptied = {} /\ retired = {} /\ falseAcks = {}
    /\ faults = 0

------------------------------------------------------------------------------
\* The master, when a producer's message arrives: it appends the record, with padding and a new file
\* when it does not fit, and decides whom the answer waits for.                        master_append
MasterAppend(n, m) ==
    LET room   == FileEnd(End(n)) - End(n)
        pads   == IF room < RecordCells + EndBlank THEN room ELSE 0
        offset == End(n) + pads
    IN  /\ ServingMaster(n)
        /\ status[m] = "unsent" /\ \A k \in Msg : k < m => status[k] # "unsent"
        /\ log' = [log EXCEPT ![n] = @ \o [i \in 1..pads |-> Pad] \o <<FirstHalf(m), SecondHalf(m)>>]
        /\ stale' = [stale EXCEPT ![n] = StaleAfter(n, pads + RecordCells)]
        /\ at' = [at EXCEPT ![m] = offset]
        /\ status' = [status EXCEPT ![m] = IF SyncRepl /\ ~SlaveOk(n, offset + RecordCells) THEN "alone" ELSE "waiting"]
        /\ UNCHANGED <<role, up, base, flushed, durable, linkVars, histVars>>

\* The master's flush thread, at any time: the log up to o is on the disk.              master_flush
MasterFlush(n, o) ==
    /\ ServingMaster(n)
    /\ flushed[n] < o /\ o <= End(n)
    /\ flushed' = [flushed EXCEPT ![n] = o]
    /\ durable' = [durable EXCEPT ![n] = o]
    /\ UNCHANGED <<role, up, log, base, stale, linkVars, putVars, histVars>>

\* The master, when everything that the put waits for is there: the producer hears SEND_OK. If the
\* answer rests on a slave that does not have the record, that is remembered as false; a slave that
\* was there and whose loss nobody could have noticed yet is an excuse.                      ack_put
AckPut(n, m) ==
    /\ ServingMaster(n)
    /\ status[m] = "waiting" /\ HasRecord(n, m)
    /\ SyncFlush => EndOf(m) <= flushed[n]
    /\ SyncRepl => Replicated(n, EndOf(m))
    /\ status' = [status EXCEPT ![m] = "ok"]
    /\ falseAcks' = IF SyncRepl /\ ~\E s \in Node \ {n} : HasRecord(s, m) \/ (dead[s].to = n /\ dead[s].ack >= EndOf(m))
                    THEN falseAcks \cup {m} ELSE falseAcks
    /\ UNCHANGED <<at, nodeVars, linkVars, leader, promoted, lostPower, emptied, retired, faults>>

\* The master, when a wait times out: the producer hears which wait it was; the record stays. If both
\* time out, the slave's answer hides the disk's.                                        timeout_put
TimeoutPut(n, m) ==
    /\ ServingMaster(n)
    /\ HasRecord(n, m)
    /\ \/ /\ status[m] = "alone"
          /\ status' = [status EXCEPT ![m] = "no_slave"]
       \/ /\ status[m] = "waiting" /\ SyncRepl /\ ~Replicated(n, EndOf(m))
          /\ status' = [status EXCEPT ![m] = "slave_timeout"]
       \/ /\ status[m] = "waiting" /\ SyncFlush /\ EndOf(m) > flushed[n]
          /\ SyncRepl => Replicated(n, EndOf(m))
          /\ status' = [status EXCEPT ![m] = "disk_timeout"]
    /\ UNCHANGED <<at, nodeVars, linkVars, histVars>>

\* The network: the answer to a producer is lost, or its connection breaks while it waits. The record
\* stays, and nobody has promised anything.                                             (environment)
LoseAnswer(m) ==
    /\ Fault("LoseAnswer")
    /\ Waiting(m)
    /\ status' = [status EXCEPT ![m] = "unknown"]
    /\ faults' = faults + 1
    /\ UNCHANGED <<at, nodeVars, linkVars, leader, promoted, lostPower, emptied, retired, falseAcks>>

\* A slave without a connection opens one to a master that it knows.                         connect
Connect(s, n) ==
    /\ ServingSlave(s) /\ ~Linked(s)
    /\ ServingMaster(n)
    /\ link' = [link EXCEPT ![s] = FreshLink(n)]
    /\ UNCHANGED <<dead, pushMax, nodeVars, putVars, histVars>>

\* A slave, after connecting, after an append and every 5 s: it reports the end of its log. slave_report
SlaveReport(s) ==
    /\ ServingSlave(s) /\ Linked(s)
    /\ Len(link[s].up) < Chan
    /\ SlaveFlushesFirst => flushed[s] = End(s)
    /\ link' = [link EXCEPT ![s].up = Append(@, End(s))]
    /\ UNCHANGED <<dead, pushMax, nodeVars, putVars, histVars>>

\* The master's reader: it takes the last of the k reports that have arrived. The first report of a
\* connection is a request (0 means: begin at my last file); a later one beyond its own log makes it
\* close, any other raises the marks.                                              master_read_report
FirstPosition(n, v) == IF v # 0 THEN v
                       ELSE IF StartAtMin THEN base[n] ELSE FileStart(End(n))
MasterReadReport(s, k) ==
    LET n     == link[s].to
        v     == link[s].up[k]
        first == link[s].request = None
        acks  == ~(first /\ RequestIsNoAck)
        rejected == v > End(n) /\ (~first \/ ValidateFirstReport)
    IN  /\ Linked(s)
        /\ k \in 1..Len(link[s].up)
        /\ link' = IF rejected THEN Closed(s)
                   ELSE [link EXCEPT ![s].up = SubSeq(@, k + 1, Len(@)),
                                     ![s].request = IF first THEN v ELSE @,
                                     ![s].next = IF first THEN FirstPosition(n, v) ELSE @,
                                     ![s].ack = IF acks THEN v ELSE @]
        /\ pushMax' = IF rejected \/ ~acks \/ AckPerConnection THEN pushMax ELSE [pushMax EXCEPT ![n] = Max(@, v)]
        /\ UNCHANGED <<dead, nodeVars, putVars, histVars>>

\* The master's writer: it sends the next piece of its log. A piece ends wherever the batch size cuts
\* it, but never lies in two files; what retention has removed is not there to be sent.   master_send
MasterSend(s, o) ==
    LET n == link[s].to
        from == link[s].next
    IN  /\ Linked(s)
        /\ base[n] <= from        \* and not None
        /\ Len(link[s].down) < Chan
        /\ from < o /\ o <= SendLimit(n) /\ o <= FileEnd(from)
        /\ link' = [link EXCEPT ![s].down = Append(@, [from |-> from, body |-> SubSeq(log[n], from - base[n] + 1, o - base[n])]),
                                ![s].next = o]
        /\ UNCHANGED <<dead, pushMax, nodeVars, putVars, histVars>>

\* The master's writer, after 5 s of silence: an empty piece at its position.       master_heartbeat
MasterHeartbeat(s) ==
    /\ Linked(s)
    /\ link[s].next # None
    /\ Len(link[s].down) < Chan
    /\ link' = [link EXCEPT ![s].down = Append(@, [from |-> link[s].next, body |-> <<>>])]
    /\ UNCHANGED <<dead, pushMax, nodeVars, putVars, histVars>>

\* A slave, for each piece: at its own end it appends, anywhere else it closes the connection. An
\* empty slave accepts any position; its first file is the one that the position lies in. slave_append
SlaveAppend(s) ==
    LET piece == Head(link[s].down)
        fits  == End(s) = 0 \/ End(s) = piece.from
    IN  /\ ServingSlave(s) /\ Linked(s)
        /\ link[s].down # <<>>
        /\ IF fits
           THEN /\ link' = [link EXCEPT ![s].down = Tail(@)]
                /\ base' = [base EXCEPT ![s] = IF End(s) = 0 THEN FileStart(piece.from) ELSE @]
                /\ flushed' = [flushed EXCEPT ![s] = Max(@, base'[s])]
                /\ durable' = [durable EXCEPT ![s] = Max(@, base'[s])]
                /\ log' = [log EXCEPT ![s] = @ \o piece.body]
                /\ stale' = [stale EXCEPT ![s] = StaleAfter(s, Len(piece.body))]
           ELSE /\ link' = Closed(s)
                /\ UNCHANGED <<base, flushed, durable, log, stale>>
        /\ UNCHANGED <<role, up, dead, pushMax, putVars, histVars>>

\* A slave's flush thread: nobody waits for it.                                          slave_flush
SlaveFlush(s, o) ==
    /\ ServingSlave(s)
    /\ flushed[s] < o /\ o <= End(s)
    /\ flushed' = [flushed EXCEPT ![s] = o]
    /\ durable' = [durable EXCEPT ![s] = o]
    /\ UNCHANGED <<role, up, log, base, stale, linkVars, putVars, histVars>>

\* The network: a connection breaks and everything in flight is lost. The slave notices; the master
\* may go on believing in it for a while.                                             (environment)
Disconnect(s, noticed) ==
    /\ Fault("Disconnect")
    /\ Linked(s)
    /\ noticed \/ dead[s] = NoLink
    /\ dead' = IF noticed THEN dead ELSE [dead EXCEPT ![s] = Leftover(s)]
    /\ link' = Closed(s)
    /\ faults' = faults + 1
    /\ UNCHANGED <<pushMax, nodeVars, putVars, leader, promoted, lostPower, emptied, retired, falseAcks>>

\* The master, 20 s after the last report: it drops a connection that nobody uses.  master_close_link
MasterCloseLink(x) ==
    /\ dead[x] # NoLink
    /\ dead' = [dead EXCEPT ![x] = NoLink]
    /\ UNCHANGED <<link, pushMax, nodeVars, putVars, histVars>>

\* A stranger (a health check, a slave of another cluster) connects and sends a number.  (environment)
StrayReport(n, v) ==
    /\ Fault("StrayReport")
    /\ ServingMaster(n) /\ dead[Stray] = NoLink
    /\ IF ValidateFirstReport /\ v > End(n)
       THEN UNCHANGED <<dead, pushMax>>
       ELSE /\ dead' = [dead EXCEPT ![Stray] = [to |-> n, ack |-> IF RequestIsNoAck THEN None ELSE v]]
            /\ pushMax' = IF RequestIsNoAck \/ AckPerConnection THEN pushMax ELSE [pushMax EXCEPT ![n] = Max(@, v)]
    /\ faults' = faults + 1
    /\ UNCHANGED <<link, nodeVars, putVars, leader, promoted, lostPower, emptied, retired, falseAcks>>

------------------------------------------------------------------------------
\* What all ways for a master's process to end have in common: its connections are gone, its mark is 0 when it
\* comes back, and the producers that wait will never know.
ForgetMaster(n) ==
    /\ link' = [s \in Node |-> IF link[s].to = n THEN NoLink ELSE link[s]]
    /\ dead' = [x \in DOMAIN dead |-> IF dead[x].to = n THEN NoLink ELSE dead[x]]
    /\ pushMax' = [pushMax EXCEPT ![n] = 0]
    /\ status' = [m \in Msg |-> IF Waiting(m) /\ HasRecord(n, m) THEN "unknown" ELSE status[m]]
    /\ at' = at

\* What a power loss leaves of n's log when the first lost cell is the one at offset o: the bytes
\* before it, and perhaps later ones after a hole.
LosePages(n, o) ==
    LET kept  == o - base[n]
        disk  == log[n] \o stale[n]
        later == SubSeq(disk, kept + 2, Len(disk))
    IN  /\ durable[n] <= o /\ o <= End(n)
        /\ log' = [log EXCEPT ![n] = SubSeq(@, 1, kept)]
        /\ flushed' = [flushed EXCEPT ![n] = durable[n]]
        /\ \/ stale' = [stale EXCEPT ![n] = <<>>]
           \/ PagesSurvive /\ later # <<>> /\ stale' = [stale EXCEPT ![n] = <<Hole>> \o later]
        /\ UNCHANGED <<durable, base>>

\* What recovery makes of n's disk: it keeps complete records and moves the end of the log there.
\* To believe that all of it is flushed is wishful thinking, unless it flushes first.
Recover(n) ==
    LET disk  == log[n] \o stale[n]
        valid == ValidLen(disk)
    IN  /\ log' = [log EXCEPT ![n] = SubSeq(disk, 1, valid)]
        /\ stale' = [stale EXCEPT ![n] = IF ZeroTailOnTruncate THEN <<>> ELSE SubSeq(disk, valid + 1, Len(disk))]
        /\ flushed' = [flushed EXCEPT ![n] = base[n] + valid]
        /\ durable' = [durable EXCEPT ![n] = IF FlushOnRecovery THEN base[n] + valid ELSE Min(@, base[n] + valid)]
        /\ UNCHANGED base

Empty(n) ==
    /\ log' = [log EXCEPT ![n] = <<>>]
    /\ base' = [base EXCEPT ![n] = 0]
    /\ flushed' = [flushed EXCEPT ![n] = 0]
    /\ durable' = [durable EXCEPT ![n] = 0]
    /\ stale' = [stale EXCEPT ![n] = <<>>]

\* The master's process dies; what it has written survives.                            (environment)
MasterCrash(n) ==
    /\ Fault("MasterCrash")
    /\ ServingMaster(n)
    /\ up' = [up EXCEPT ![n] = "down"]
    /\ ForgetMaster(n)
    /\ faults' = faults + 1
    /\ UNCHANGED <<role, log, base, flushed, durable, stale, leader, promoted, lostPower, emptied, retired, falseAcks>>

\* The master's machine loses power: its log ends at or past what was durable.         (environment)
MasterPowerLoss(n, o) ==
    /\ Fault("MasterPowerLoss")
    /\ role[n] = "master" /\ up[n] # "gone"
    /\ LosePages(n, o)
    /\ up' = [up EXCEPT ![n] = "down"]
    /\ ForgetMaster(n)
    /\ lostPower' = lostPower \cup {n}
    /\ faults' = faults + 1
    /\ UNCHANGED <<role, leader, promoted, emptied, retired, falseAcks>>

\* The master's disk is lost; nobody starts a master on an empty disk.                 (environment)
MasterDiskLoss(n) ==
    /\ Fault("MasterDiskLoss")
    /\ role[n] = "master" /\ up[n] # "gone"
    /\ Empty(n)
    /\ up' = [up EXCEPT ![n] = "gone"]
    /\ ForgetMaster(n)
    /\ emptied' = emptied \cup {n}
    /\ faults' = faults + 1
    /\ UNCHANGED <<role, leader, promoted, lostPower, retired, falseAcks>>

\* The master starts again on its disk.                                               master_restart
MasterRestart(n) ==
    /\ role[n] = "master" /\ up[n] = "down"
    /\ Recover(n)
    /\ up' = [up EXCEPT ![n] = "up"]
    /\ UNCHANGED <<role, linkVars, putVars, histVars>>

\* A slave's process dies; the master sees the end of the connection.                  (environment)
SlaveCrash(s) ==
    /\ Fault("SlaveCrash")
    /\ ServingSlave(s)
    /\ up' = [up EXCEPT ![s] = "down"]
    /\ link' = Closed(s)
    /\ faults' = faults + 1
    /\ UNCHANGED <<role, log, base, flushed, durable, stale, dead, pushMax, putVars, leader, promoted, lostPower, emptied, retired, falseAcks>>

\* A slave's machine loses power; the master sees nothing.                             (environment)
SlavePowerLoss(s, o) ==
    /\ Fault("SlavePowerLoss")
    /\ role[s] = "slave"
    /\ LosePages(s, o)
    /\ up' = [up EXCEPT ![s] = "down"]
    /\ dead' = IF Linked(s) THEN [dead EXCEPT ![s] = Leftover(s)] ELSE dead
    /\ link' = Closed(s)
    /\ lostPower' = lostPower \cup {s}
    /\ faults' = faults + 1
    /\ UNCHANGED <<role, pushMax, putVars, leader, promoted, emptied, retired, falseAcks>>

\* A slave starts again, on its disk or on a new one.                                  slave_restart
SlaveRestart(s) ==
    /\ role[s] = "slave" /\ up[s] # "up"
    /\ Recover(s)
    /\ up' = [up EXCEPT ![s] = "up"]
    /\ UNCHANGED <<role, linkVars, putVars, histVars>>

\* The master's retention: the oldest file goes, whether or not every slave has it. (Nobody waits as
\* long as a file lives.)                                                                expire_file
ExpireFile(n) ==
    LET first == base[n] + FileSize
        old   == {m \in Msg : HasRecord(n, m) /\ at[m] < first}
    IN  /\ Fault("ExpireFile")
        /\ ServingMaster(n)
        /\ first <= FileStart(End(n) - 1)
        /\ \A m \in old : ~Waiting(m)
        /\ base' = [base EXCEPT ![n] = first]
        /\ log' = [log EXCEPT ![n] = SubSeq(@, FileSize + 1, Len(@))]
        /\ flushed' = [flushed EXCEPT ![n] = Max(@, first)]
        /\ durable' = [durable EXCEPT ![n] = Max(@, first)]
        /\ retired' = retired \cup old
        /\ faults' = faults + 1
        /\ UNCHANGED <<role, up, stale, linkVars, putVars, leader, promoted, lostPower, emptied, falseAcks>>

\* An operator, when the master is down: a slave is started again as the master. What becomes of the
\* old one is the operator's business; nothing in the protocol prevents it from coming back as it was.
Promote(s) ==                                                                        \* (environment)
    /\ Fault("Promote")
    /\ ServingSlave(s)
    /\ up[leader] # "up"
    /\ PromoteLongest => \A t \in Node : role[t] = "slave" => End(t) <= End(s)
    /\ role' = [n \in Node |-> IF n = s THEN "master" ELSE IF n = leader /\ OldMasterBecomes # "master" THEN "slave" ELSE role[n]]
    /\ LET disk  == log[s] \o stale[s]
           valid == ValidLen(disk)
           wiped(n) == n = leader /\ OldMasterBecomes = "wiped"
       IN  /\ log' = [n \in Node |-> IF n = s THEN SubSeq(disk, 1, valid) ELSE IF wiped(n) THEN <<>> ELSE log[n]]
           /\ base' = [n \in Node |-> IF wiped(n) THEN 0 ELSE base[n]]
           /\ flushed' = [n \in Node |-> IF n = s THEN base[s] + valid ELSE IF wiped(n) THEN 0 ELSE flushed[n]]
           /\ durable' = [n \in Node |-> IF n = s THEN IF FlushOnRecovery THEN base[s] + valid ELSE Min(durable[s], base[s] + valid)
                                         ELSE IF wiped(n) THEN 0 ELSE durable[n]]
           /\ stale' = [n \in Node |-> IF n = s THEN IF ZeroTailOnTruncate THEN <<>> ELSE SubSeq(disk, valid + 1, Len(disk))
                                       ELSE IF wiped(n) THEN <<>> ELSE stale[n]]
    /\ emptied' = IF OldMasterBecomes = "wiped" THEN emptied \cup {leader} ELSE emptied
    /\ link' = Closed(s)
    /\ leader' = s
    /\ promoted' = TRUE
    /\ faults' = faults + 1
    /\ UNCHANGED <<up, dead, pushMax, putVars, lostPower, retired, falseAcks>>

\* An operator (repair of W-A5, W-A6): a slave that cannot follow its master is emptied. (environment)
Stuck(s) ==
    IF Linked(s) /\ link[s].next # None THEN link[s].next < base[leader] \/ link[s].next > End(leader)
    ELSE End(s) # 0 /\ (End(s) < base[leader] \/ End(s) > End(leader))
WipeSlave(s) ==
    /\ WipeStuck
    /\ ServingSlave(s) /\ ServingMaster(leader)
    /\ Stuck(s)
    /\ Empty(s)
    /\ link' = Closed(s)
    /\ emptied' = emptied \cup {s}
    /\ UNCHANGED <<role, up, dead, pushMax, putVars, leader, promoted, lostPower, retired, falseAcks, faults>>

------------------------------------------------------------------------------
FarAway == FileSize * (MaxMsgs + 1)     \* a number that no log of the model reaches
\* Where the next piece, a flush and a power loss may end, and what a stranger may say: the interesting
\* numbers. (A model may offer more; the actions refuse what cannot be.)
NextPieces(s)   == IF Linked(s) THEN (link[s].next + 1)..End(link[s].to) ELSE {}
StrayNumbers(n) == {End(n), FarAway}
FlushPoints(n)  == {End(n)}
LossPoints(n)   == durable[n]..End(n)

\* Whom a step may concern. Everybody: each action says what it needs. A large model narrows
\* these to those who can act, which spares TLC from trying the others.
Masters  == Node
Slaves   == Node
Pullers  == Node        \* slaves with a connection
Restarts == Node        \* who is down
Struck   == Node        \* whom a fault may strike
Answers  == Msg         \* messages that somebody waits for

Next ==
    \/ \E n \in Masters, m \in Msg : MasterAppend(n, m)
    \/ \E m \in Answers : \E n \in Masters : AckPut(n, m) \/ TimeoutPut(n, m)
    \/ \E n \in Masters : \E o \in FlushPoints(n) : MasterFlush(n, o)
    \/ \E s \in Slaves : \E o \in FlushPoints(s) : SlaveFlush(s, o)
    \/ \E s \in Slaves, n \in Node : Connect(s, n)
    \/ \E s \in Pullers : SlaveReport(s) \/ SlaveAppend(s) \/ MasterHeartbeat(s)
    \/ \E s \in Pullers, k \in 1..Chan : MasterReadReport(s, k)
    \/ \E s \in Pullers : \E o \in NextPieces(s) : MasterSend(s, o)
    \/ \E x \in DOMAIN dead : MasterCloseLink(x)
    \/ \E n \in Restarts : MasterRestart(n) \/ SlaveRestart(n)
    \/ \E s \in Slaves : WipeSlave(s)
    \/ \E n \in Struck : MasterCrash(n) \/ MasterDiskLoss(n) \/ SlaveCrash(n) \/ ExpireFile(n) \/ Promote(n)
    \/ \E n \in Struck : \E o \in LossPoints(n) : MasterPowerLoss(n, o) \/ SlavePowerLoss(n, o)
    \/ \E n \in Struck : \E v \in StrayNumbers(n) : StrayReport(n, v)
    \/ \E s \in Struck, noticed \in BOOLEAN : Disconnect(s, noticed)
    \/ \E m \in Answers : LoseAnswer(m)

Spec == Init /\ [][Next]_vars

\* What the live parts of a cluster keep doing. The writer shares its turn with heartbeats, so it needs
\* the strong form.
Fairness ==
    /\ \A n \in Node : WF_vars(MasterRestart(n)) /\ WF_vars(SlaveRestart(n)) /\ WF_vars(MasterFlush(n, End(n)))
                       /\ WF_vars(SlaveFlush(n, End(n)))
    /\ \A s \in Node : WF_vars(\E n \in Node : Connect(s, n)) /\ WF_vars(SlaveReport(s)) /\ WF_vars(SlaveAppend(s))
    /\ \A s \in Node : WF_vars(\E k \in 1..Chan : MasterReadReport(s, k)) /\ SF_vars(\E o \in NextPieces(s) : MasterSend(s, o))
    /\ \A s \in Node : WF_vars(WipeSlave(s))
    /\ \A m \in Msg : WF_vars(\E n \in Node : AckPut(n, m) \/ TimeoutPut(n, m))

FairSpec == Spec /\ Fairness
==============================================================================
