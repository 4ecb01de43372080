-------------------------- MODULE TraceHaReplication --------------------------
(***************************************************************************)
(* Is a recorded trace of a replicated broker a behaviour of HaReplication?*)
(* Each step takes the next event: it must be possible in the present      *)
(* state, and the state after it must be the one that the event describes. *)
(* An event fixes its successor, so the search is a line.                  *)
(*                                                                         *)
(* `actor` is the broker that acts, and for everything on a connection the *)
(* slave whose connection it is ("stray" for a stranger); the `subject` of *)
(* Connect is the master. Events of several brokers are merged in an order *)
(* in which causes come before effects.                                    *)
(*                                                                         *)
(* Offsets of a trace are bytes; the model has two cells for each record   *)
(* and one for the padding of a file. All records of a trace must have one *)
(* size. Where a file ends is read off the first append that leaves a gap. *)
(* A cut anywhere inside a record is the cell between its halves; a piece  *)
(* that begins and ends inside one record has no cell and counts as a      *)
(* heartbeat.                                                              *)
(***************************************************************************)
EXTENDS HaReplicationPromises

CONSTANT Events
VARIABLES taken,        \* how many events have been taken
          incarnation   \* incarnation[x]: the number of x's present connection
traceVars == <<taken, incarnation, vars>>

Appends == {i \in 1..Len(Events) : Events[i].action = "MasterAppend"}
RecordBytes == IF Appends = {} THEN 2 ELSE Events[CHOOSE i \in Appends : \A j \in Appends : i <= j].size_bytes
\* The smallest place after a gap begins the second file.
Gaps == {Events[i].physical_offset : i \in {k \in Appends :
            Events[k].physical_offset # 0 /\ \A j \in Appends : Events[j].end_offset # Events[k].physical_offset}}
FileBytes == IF Gaps = {} THEN RecordBytes * (Len(Events) + 1) + 1 ELSE CHOOSE g \in Gaps : \A h \in Gaps : g <= h
PerFile   == (FileBytes - 1) \div RecordBytes
TraceFileSize == PerFile * RecordCells + EndBlank
TraceMessages == Cardinality(Appends)
TraceLength   == Len(Events)

\* From bytes to cells.
Cell(bytes) ==
    LET inFile == bytes % FileBytes
        whole  == inFile \div RecordBytes
        cell   == IF whole >= PerFile THEN PerFile * RecordCells
                  ELSE whole * RecordCells + (IF inFile % RecordBytes > 0 THEN 1 ELSE 0)
    IN  (bytes \div FileBytes) * TraceFileSize + cell
\* A report of -1 or an offset of a connection that has none.
CellOrNone(bytes) == IF bytes < 0 THEN None ELSE Cell(bytes)

ResultCode(text) == CASE text = "ok" -> 0
                      [] text = "disk_timeout" -> 10
                      [] text = "no_slave" -> 11
                      [] text = "slave_timeout" -> 12
                      [] OTHER -> None

TraceInit == Init /\ taken = 0 /\ incarnation = [x \in Node \cup {Stray} |-> 0]

EndAfter(n) == base'[n] + Len(log'[n])

\* The event e, taken by its action, leaves the state that it describes.
OnNode(e) ==
    \/ /\ e.action = "MasterAppend"
       /\ MasterAppend(e.actor, e.message)
       /\ at'[e.message] = Cell(e.physical_offset) /\ e.end_offset = e.physical_offset + RecordBytes /\ e.size_bytes = RecordBytes
    \/ e.action = "MasterFlush" /\ MasterFlush(e.actor, Cell(e.flushed_to))
    \/ e.action = "SlaveFlush" /\ SlaveFlush(e.actor, Cell(e.flushed_to))
    \/ /\ e.action = "AckPut"
       /\ AckPut(e.actor, e.message)
       /\ e.status = 0 /\ at[e.message] = Cell(e.physical_offset)
    \/ /\ e.action = "TimeoutPut"
       /\ TimeoutPut(e.actor, e.message)
       /\ e.status = ResultCode(status'[e.message]) /\ at[e.message] = Cell(e.physical_offset)
    \/ e.action = "LoseAnswer" /\ LoseAnswer(e.message)
    \/ e.action = "MasterCrash" /\ MasterCrash(e.actor)
    \/ e.action = "SlaveCrash" /\ SlaveCrash(e.actor)
    \/ e.action = "MasterDiskLoss" /\ MasterDiskLoss(e.actor)
    \/ e.action = "WipeSlave" /\ WipeSlave(e.actor)
    \/ e.action = "MasterPowerLoss" /\ MasterPowerLoss(e.actor, Cell(e.kept_to))
    \/ e.action = "SlavePowerLoss" /\ SlavePowerLoss(e.actor, Cell(e.kept_to))
    \/ e.action = "MasterRestart" /\ MasterRestart(e.actor) /\ EndAfter(e.actor) = Cell(e.max_offset)
    \/ e.action = "SlaveRestart" /\ SlaveRestart(e.actor) /\ EndAfter(e.actor) = Cell(e.max_offset)
    \/ e.action = "Promote" /\ Promote(e.actor) /\ EndAfter(e.actor) = Cell(e.max_offset)
    \/ /\ e.action = "ExpireFile"
       /\ base[e.actor] = Cell(e.file_offset)
       /\ ExpireFile(e.actor)
       /\ base'[e.actor] = Cell(e.min_offset)

\* Of several equal reports in flight the oldest is read, which leaves the most to be read later.
ReportTaken(e) == CHOOSE k \in 1..Len(link[e.actor].up) :
    /\ link[e.actor].up[k] = Cell(e.report)
    /\ \A j \in 1..(k - 1) : link[e.actor].up[j] # Cell(e.report)
OnLink(e) ==
    /\ IF e.action = "Connect" THEN e.incarnation > incarnation[e.actor]
       ELSE IF e.action = "MasterCloseLink" THEN e.incarnation <= incarnation[e.actor]   \* an older one, perhaps
       ELSE e.incarnation = incarnation[e.actor]
    /\ \/ e.action = "Connect" /\ Connect(e.actor, e.subject)
       \/ e.action = "SlaveReport" /\ End(e.actor) = Cell(e.max_offset) /\ SlaveReport(e.actor)
       \/ /\ e.action = "MasterReadReport"
          /\ Linked(e.actor)
          /\ \E k \in 1..Len(link[e.actor].up) : link[e.actor].up[k] = Cell(e.report)
          /\ MasterReadReport(e.actor, ReportTaken(e))
          /\ IF link'[e.actor] = NoLink THEN e.ack_offset < 0 ELSE link'[e.actor].ack = CellOrNone(e.ack_offset)
       \/ /\ e.action = "MasterSend"
          /\ Linked(e.actor)
          /\ link[e.actor].next = Cell(e.from_offset)
          /\ IF Cell(e.from_offset) = Cell(e.to_offset) THEN MasterHeartbeat(e.actor) ELSE MasterSend(e.actor, Cell(e.to_offset))
       \/ /\ e.action = "MasterHeartbeat"
          /\ Linked(e.actor)
          /\ link[e.actor].next = Cell(e.from_offset)
          /\ MasterHeartbeat(e.actor)
       \/ /\ e.action = "SlaveAppend"
          /\ SlaveAppend(e.actor)
          /\ Head(link[e.actor].down).from = Cell(e.from_offset)
          /\ link'[e.actor] # NoLink => EndAfter(e.actor) = Cell(e.to_offset)
       \/ e.action = "Disconnect" /\ Disconnect(e.actor, e.noticed # 0)
       \/ e.action = "MasterCloseLink" /\ MasterCloseLink(e.actor)

OnPort(e) == e.action = "StrayReport" /\ StrayReport(e.actor, Cell(e.max_offset))

LinkActions == {"Connect", "SlaveReport", "MasterReadReport", "MasterSend", "MasterHeartbeat", "SlaveAppend", "Disconnect", "MasterCloseLink"}
TakeEvent ==
    /\ taken < Len(Events)
    /\ taken' = taken + 1
    /\ LET e == Events[taken + 1] IN
       /\ IF e.action \in LinkActions THEN OnLink(e) ELSE OnNode(e) \/ OnPort(e)
       /\ incarnation' = IF e.action = "Connect" THEN [incarnation EXCEPT ![e.actor] = e.incarnation] ELSE incarnation

TraceSpec == TraceInit /\ [][TakeEvent]_traceVars

\* Acceptance is refinement.
StepsOfNext == [][Next]_vars
==============================================================================
