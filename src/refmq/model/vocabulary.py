"""One vocabulary: every protocol step has one name, the same in five places.

`DispatchMessage` is an action of the specification StoreRecovery, the step function `dispatch_message` of the
reference, the event `DispatchMessage` of a trace, the step `DispatchMessage` of a conformance history and a column
value in a trace check. This module is the list of those names. Tests compare it with the specifications' `Next`, with
the oracles and, through `conformance/homes.py`, with the step functions; the table of the docs is made from it.

An action is taken by the implementation, by a client, or by the environment: a fault, a clock, a message that the
network loses. Once it is built, an action of the implementation has a step function and a trace event. Actions of the
environment have no step function: a simulated history takes them. The simulator records crashes and power losses.

The last column says what an event carries in `Event.a`, `.b`, `.c` and `.d`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class By(StrEnum):
    """Who takes an action."""

    NODE = "node"
    """The implementation: a step function, once it is built."""
    CLIENT = "client"
    """A client of the cluster; the reference client and the scripted test client have the step."""
    ENVIRONMENT = "environment"
    """The world: crashes, power loss, networks, clocks, operators."""


@dataclass(frozen=True, slots=True)
class Action:
    """One action of one protocol."""

    name: str
    by: By
    meaning: str
    fields: tuple[str, ...] = ()
    """What `a`, `b`, `c`, `d` of its trace event hold, in this order."""

    @property
    def step(self) -> str:
        """The name of the step function: DispatchMessage -> dispatch_message."""
        return "".join("_" + c.lower() if c.isupper() else c for c in self.name).lstrip("_")


@dataclass(frozen=True, slots=True)
class Invariant:
    """One promise, named for the promise. `liveness` ones need fairness and a finite history."""

    name: str
    meaning: str
    liveness: bool = False


@dataclass(frozen=True, slots=True)
class Protocol:
    """One specification: its module in spec/, its actions and its promises."""

    module: str
    actions: tuple[Action, ...]
    invariants: tuple[Invariant, ...]


STORE_RECOVERY: Final = Protocol(
    "StoreRecovery",
    actions=(
        Action(
            "AppendMessage",
            By.NODE,
            "A record is appended to the commit log, not yet durable.",
            ("physical_offset", "queue_offset", "message", "size_bytes"),
        ),
        Action(
            "RollFile",
            By.NODE,
            "The last file ends with a blank record and the next one begins.",
            ("physical_offset", "next_file_offset"),
        ),
        Action(
            "FlushLog",
            By.NODE,
            "The commit log is durable up to a position, and so is every record stored up to a time.",
            ("flushed_to", "log_ms"),
        ),
        Action(
            "AckPut",
            By.NODE,
            "The producer is told that its message is stored.",
            ("physical_offset", "queue_offset", "message", "status"),
        ),
        Action(
            "DispatchMessage",
            By.NODE,
            "One record of the log gets its queue unit and its index entries.",
            ("physical_offset", "queue_offset", "tags_code", "size_bytes"),
        ),
        Action("FlushQueue", By.NODE, "A consume queue is durable up to a position.", ("flushed_to",)),
        Action(
            "FlushIndex",
            By.NODE,
            "The index is durable up to an entry; it has all entries of the records before a position.",
            ("flushed_to", "entries_to"),
        ),
        Action(
            "WriteCheckpoint",
            By.NODE,
            "The three time stamps are written and durable, and how far queues and index are complete (modulo 2^32).",
            ("log_ms", "queue_ms", "index_ms", "queues_to"),
        ),
        Action(
            "ServeMessage",
            By.NODE,
            "A message is given to a consumer.",
            ("physical_offset", "queue_offset", "message", "size_bytes"),
        ),
        Action("ExpireFile", By.NODE, "The oldest file of the log is removed.", ("file_offset", "min_offset")),
        Action(
            "StartStore",
            By.NODE,
            "The directory is locked and marked as in use (abort file).",
            ("was_clean",),
        ),
        Action(
            "ScanLog",
            By.NODE,
            "Recovery has read the log and knows where its valid part ends.",
            ("scan_from", "valid_to"),
        ),
        Action(
            "TruncateQueue",
            By.NODE,
            "Recovery cuts the units that point past the valid log.",
            ("queue_offset_end", "valid_to"),
        ),
        Action(
            "TruncateLog",
            By.NODE,
            "Recovery cuts the log at its valid end and zeroes what follows.",
            ("valid_to", "log_ms"),
        ),
        Action(
            "FinishRecovery",
            By.NODE,
            "Every valid record is dispatched; the store serves.",
            ("valid_to", "min_offset"),
        ),
        Action("StopStore", By.NODE, "A clean stop: everything flushed, abort file removed.", ("valid_to",)),
        Action("ProcessCrash", By.ENVIRONMENT, "Memory is gone; every written byte survives."),
        Action("PowerLoss", By.ENVIRONMENT, "Any subset of the unflushed pages is gone as well."),
        Action("FailFlush", By.ENVIRONMENT, "A flush reports an error; the pages' fate is unknown."),
        Action(
            "RemoveQueues",
            By.ENVIRONMENT,
            "An operator removes the consume queues of a stopped store to have them rebuilt.",
        ),
    ),
    invariants=(
        Invariant("AckedSurvives", "What was acknowledged survives every fault that the flush mode covers."),
        Invariant("NoInvention", "Nothing is stored or served that was not sent."),
        Invariant(
            "QueueMatchesLog",
            "Every queue unit names the record that it claims to name, in order, without holes.",
        ),
        Invariant("IndexFindsEveryKey", "A query by key finds every retained message that has the key."),
        Invariant("RecoveryIdempotent", "A recovery that is interrupted and repeated ends as an undisturbed one."),
        Invariant("NeverServeUnflushed", "With sync flush nothing is served that a power loss could take back."),
        Invariant("TimeSearchExact", "The search by time finds the first message stored at or after the time."),
        Invariant("RetentionPrefix", "Cleaning removes the oldest files only, never a hole in the middle."),
        Invariant("CheckpointMonotone", "Checkpoint stamps never run ahead of the durable data they describe."),
        Invariant(
            "RecoveryFinishes",
            "A store that is started without further faults serves in the end.",
            liveness=True,
        ),
    ),
)

HA_REPLICATION: Final = Protocol(
    "HaReplication",
    actions=(
        Action(
            "MasterAppend",
            By.NODE,
            "The master appends a record and knows who waits for it.",
            ("physical_offset", "end_offset", "message", "size_bytes"),
        ),
        Action("MasterFlush", By.NODE, "The master's log is durable up to a position.", ("flushed_to",)),
        Action(
            "AckPut",
            By.NODE,
            "The producer is told that its message is stored (and replicated).",
            ("physical_offset", "queue_offset", "message", "status"),
        ),
        Action(
            "TimeoutPut",
            By.NODE,
            "The wait for the slave ends without an acknowledgement.",
            ("physical_offset", "queue_offset", "message", "status"),
        ),
        Action("LoseAnswer", By.ENVIRONMENT, "The producer never hears the answer to its put.", ("message",)),
        Action("Connect", By.NODE, "A slave opens a new connection to its master.", ("incarnation",)),
        Action(
            "SlaveReport",
            By.NODE,
            "The slave reports the end of its log: first a request, later acknowledgements.",
            ("incarnation", "max_offset"),
        ),
        Action(
            "MasterReadReport",
            By.NODE,
            "The master reads a report: chooses where to begin, or marks it acknowledged.",
            ("incarnation", "report", "ack_offset"),
        ),
        Action(
            "MasterSend",
            By.NODE,
            "The master sends the next piece of its log.",
            ("incarnation", "from_offset", "to_offset"),
        ),
        Action(
            "MasterHeartbeat",
            By.NODE,
            "The master sends an empty frame at its position.",
            ("incarnation", "from_offset"),
        ),
        Action(
            "SlaveAppend",
            By.NODE,
            "The slave appends a received piece, or closes on a wrong offset.",
            ("incarnation", "from_offset", "to_offset"),
        ),
        Action("SlaveFlush", By.NODE, "The slave's log is durable up to a position.", ("flushed_to",)),
        Action(
            "Disconnect",
            By.ENVIRONMENT,
            "The connection breaks and everything in flight is lost; the master may not notice.",
            ("incarnation", "noticed"),
        ),
        Action(
            "MasterCloseLink",
            By.NODE,
            "The master drops a connection on which nobody reports any more.",
            ("incarnation",),
        ),
        Action(
            "StrayReport",
            By.ENVIRONMENT,
            "Somebody who is no slave of ours connects and reports a number.",
            ("incarnation", "max_offset"),
        ),
        Action("MasterCrash", By.ENVIRONMENT, "The master's process dies; its files survive."),
        Action("MasterPowerLoss", By.ENVIRONMENT, "The master loses any unflushed suffix.", ("kept_to",)),
        Action("MasterDiskLoss", By.ENVIRONMENT, "The master loses its disk."),
        Action("MasterRestart", By.NODE, "The master recovers its log and accepts connections.", ("max_offset",)),
        Action("SlaveCrash", By.ENVIRONMENT, "A slave's process dies; its files survive."),
        Action("SlavePowerLoss", By.ENVIRONMENT, "A slave loses any unflushed suffix.", ("kept_to",)),
        Action("SlaveRestart", By.NODE, "A slave recovers its log.", ("max_offset",)),
        Action("ExpireFile", By.NODE, "The oldest file of the log is removed.", ("file_offset", "min_offset")),
        Action("Promote", By.ENVIRONMENT, "An operator makes a slave the master.", ("max_offset",)),
        Action("WipeSlave", By.ENVIRONMENT, "An operator empties a slave that cannot follow its master."),
    ),
    invariants=(
        Invariant(
            "AckedSurvives",
            "What was acknowledged survives every fault that the flush and replication mode cover.",
        ),
        Invariant("NoInvention", "No log holds a message that was not sent."),
        Invariant("PrefixReplica", "A slave's log equals the master's at every offset that both hold."),
        Invariant("SlaveContiguous", "A slave's log has no hole."),
        Invariant("SlaveNeverAhead", "No slave's log is longer than the master's."),
        Invariant("NoFalseAck", "At a replicated acknowledgement a slave holds that very message."),
        Invariant(
            "DurableAck", "With sync flush an acknowledged message is durable on the master that acknowledged it."
        ),
        Invariant("ReportsHonest", "A slave never reports more than it holds."),
        Invariant("FrameWithinFile", "A piece of the log in flight never lies in two files."),
        Invariant("FullCopy", "A slave that is level with its master holds everything that the master holds."),
        Invariant("OneMaster", "One broker of a name serves as master."),
        Invariant("NoGhost", "Recovery brings back nothing that lay behind the end of the log."),
        Invariant("VisibleStays", "What consumers could see on the master is not taken back by a restart."),
        Invariant("CatchUp", "Without further faults a slave gets the whole log.", liveness=True),
        Invariant("PutResolves", "Every put is answered.", liveness=True),
    ),
)

TRANSACTION_CHECK_BACK: Final = Protocol(
    "TransactionCheckBack",
    actions=(
        Action(
            "SendHalf",
            By.CLIENT,
            "The half message is stored in the half topic.",
            ("physical_offset", "half_offset", "message", "check_times"),
        ),
        Action(
            "LocalDecide",
            By.CLIENT,
            "The producer decides and sends its decision.",
            ("decision", "half_offset", "message"),
        ),
        Action(
            "EndTransaction",
            By.NODE,
            "The broker takes a decision: commits to the real topic, or not.",
            ("decision", "half_offset", "message", "status"),
        ),
        Action(
            "WriteOp",
            By.NODE,
            "The op message marks a half message as done.",
            ("op_offset", "half_offset", "message"),
        ),
        Action(
            "RoundStart",
            By.NODE,
            "A check round begins at the stored progress.",
            ("half_offset", "op_offset"),
        ),
        Action("PullOps", By.NODE, "The round reads the next op messages.", ("op_offset_from", "op_offset_to")),
        Action(
            "HalfRemoved",
            By.NODE,
            "The round passes a half message that has its op.",
            ("half_offset", "op_offset"),
        ),
        Action(
            "HalfDiscard",
            By.NODE,
            "A half message was checked too often or is too old and is set aside.",
            ("half_offset", "check_times", "message"),
        ),
        Action(
            "HalfImmune",
            By.NODE,
            "A half message is too young to be checked.",
            ("half_offset", "new_offset", "message"),
        ),
        Action(
            "HalfRenewAndCheck",
            By.NODE,
            "A copy is appended and the producer is asked.",
            ("half_offset", "new_offset", "message", "check_times"),
        ),
        Action("RoundFinish", By.NODE, "The round stores its progress.", ("half_offset", "op_offset")),
        Action(
            "RoundAbort",
            By.NODE,
            "The round ends early and keeps the old progress.",
            ("half_offset", "op_offset"),
        ),
        Action(
            "CheckReply",
            By.CLIENT,
            "The producer answers a check-back.",
            ("decision", "half_offset", "message"),
        ),
        Action(
            "PersistProgress",
            By.NODE,
            "The progress of the rounds is written to the offset file.",
            ("half_offset", "op_offset"),
        ),
        Action("FlushLog", By.NODE, "The log is durable up to a position.", ("flushed_to", "log_ms")),
        Action("LoseEnd", By.ENVIRONMENT, "A decision is lost on its way."),
        Action("DuplicateEnd", By.ENVIRONMENT, "A decision arrives twice."),
        Action("LoseCheck", By.ENVIRONMENT, "A check-back or its answer is lost."),
        Action("ProducerDeath", By.ENVIRONMENT, "The producer forgets everything that it has not sent."),
        Action("ImmunityOver", By.ENVIRONMENT, "A half message becomes old enough to be checked.", ("message",)),
        Action("ProcessCrash", By.ENVIRONMENT, "The broker's memory is gone."),
        Action("PowerLoss", By.ENVIRONMENT, "The broker loses any unflushed suffix of its log.", ("kept_to",)),
    ),
    invariants=(
        Invariant("NoHalfVisible", "A half message is never served to a consumer."),
        Invariant("CommittedVisible", "A committed message is in its topic: at least once.", liveness=True),
        Invariant("CommittedOnce", "A committed message is in its topic at most once."),
        Invariant("RolledBackNeverVisible", "A message that was rolled back is never in its topic."),
        Invariant(
            "CommittedNotForgotten",
            "A committed half message is never passed without being delivered or set aside.",
        ),
        Invariant("NoDiscardFinished", "Nothing is set aside that was delivered before."),
        Invariant("AskedBeforeDiscard", "Nothing is set aside before its producer was asked as often as promised."),
        Invariant("FinalFromHalf", "A final message is made from a half message of the same transaction."),
        Invariant("EveryHalfDecided", "Every half message ends committed, rolled back or set aside.", liveness=True),
    ),
)

REBALANCE: Final = Protocol(
    "Rebalance",
    actions=(
        Action("Heartbeat", By.CLIENT, "A consumer registers at a broker, or keeps its place."),
        Action("Leave", By.CLIENT, "A consumer unregisters, having persisted its offsets."),
        Action("ViewRefresh", By.CLIENT, "A consumer reads the member list from one broker.", ("members",)),
        Action("RouteRefresh", By.CLIENT, "A consumer learns which queues the topic has.", ("queues",)),
        Action("ReleaseQueue", By.CLIENT, "A consumer drops a queue that is no longer its own.", ("consumed_to",)),
        Action(
            "AcquireQueue",
            By.CLIENT,
            "A consumer takes a queue and starts at the committed offset.",
            ("start_offset",),
        ),
        Action(
            "PullMessages",
            By.CLIENT,
            "A consumer fetches the next messages of a queue.",
            ("from_offset", "next_offset", "status"),
        ),
        Action("ConsumeStart", By.CLIENT, "A message is handed to the listener.", ("queue_offset", "message")),
        Action(
            "ConsumeFinish",
            By.CLIENT,
            "The listener is done with a message.",
            ("queue_offset", "message", "status"),
        ),
        Action("CommitSend", By.CLIENT, "A consumer sends its consumed offset.", ("offset",)),
        Action("CommitOffset", By.NODE, "The broker stores an offset.", ("before", "after")),
        Action("PersistOffsets", By.NODE, "The broker writes its offsets to the offset file."),
        Action(
            "LockQueue",
            By.NODE,
            "The broker lends a queue to a client, or prolongs the loan.",
            ("granted", "at_ms"),
        ),
        Action("UnlockQueue", By.NODE, "The broker takes a loan back from its holder.", ("at_ms",)),
        Action("TrustExpire", By.CLIENT, "A client stops trusting its lock."),
        Action("LoanExpire", By.NODE, "A loan becomes too old and may go to another client."),
        Action("RemoveMember", By.NODE, "A broker removes a member: closed channel or missing heartbeats."),
        Action("ConsumerDeath", By.ENVIRONMENT, "A consumer dies without a word."),
        Action("ConsumerPause", By.ENVIRONMENT, "A consumer stops for longer than the others' patience."),
        Action("ConsumerResume", By.ENVIRONMENT, "It goes on where it was, with what it had."),
        Action("LoseCommit", By.ENVIRONMENT, "A commit is lost on its way.", ("offset",)),
        Action(
            "RestartBroker",
            By.ENVIRONMENT,
            "A broker restarts: loans and members forgotten, offsets from the file.",
        ),
        Action("ResetOffset", By.ENVIRONMENT, "An operator moves the committed offset.", ("before", "after")),
        Action("RouteChange", By.ENVIRONMENT, "An operator gives the topic more queues, or fewer.", ("queues",)),
        Action("ProduceMessage", By.ENVIRONMENT, "A producer's message reaches a queue.", ("queue_offset",)),
    ),
    invariants=(
        Invariant("OneOwnerPerQueue", "No two consumers trust the same queue at the same time (orderly)."),
        Invariant("OneListenerPerQueue", "No two listeners have messages of a queue at the same time (orderly)."),
        Invariant("OrderlyInOrder", "A listener gets a message when all older ones of its queue are done (orderly)."),
        Invariant("NoSkippedOffset", "No message is passed that was neither consumed nor handed to retry."),
        Invariant("CommittedOffsetNeverAhead", "Every message below the committed offset was consumed."),
        Invariant("CommittedOffsetMonotone", "A committed offset falls only by an explicit reset."),
        Invariant("AllQueuesOwned", "When membership is stable every queue has exactly one owner.", liveness=True),
    ),
)

PROTOCOLS: Final = (STORE_RECOVERY, HA_REPLICATION, TRANSACTION_CHECK_BACK, REBALANCE)

NAMESERVER: Final = (
    Action("RegisterBroker", By.NODE, "A broker says who it is and what it has.", ("broker_id", "channel")),
    Action("QueryDataVersion", By.NODE, "A broker whose version is known says that it is alive."),
    Action("UnregisterBroker", By.NODE, "A broker leaves.", ("broker_id",)),
    Action("ExpireBrokers", By.NODE, "Brokers that were silent for too long are forgotten.", ("count",)),
    Action(
        "CloseBrokerChannel",
        By.NODE,
        "The brokers that registered over a lost connection are forgotten.",
        ("channel", "count"),
    ),
    Action("WipeWritePerm", By.NODE, "An operator keeps producers away from a broker.", ("topics",)),
    Action("AddWritePerm", By.NODE, "An operator lets producers use a broker again.", ("topics",)),
    Action("DeleteTopic", By.NODE, "An operator removes a topic from the routes."),
    Action("PutKv", By.NODE, "A value of the key-value configuration is set."),
    Action("DeleteKv", By.NODE, "A value of the key-value configuration is removed."),
    Action("UpdateSettings", By.NODE, "Settings are changed over the wire.", ("count",)),
)
"""The steps of a nameserver. They have no specification: its promise is that routes follow from what brokers said."""

DISTURBANCES: Final = (
    Action("FlipBit", By.ENVIRONMENT, "A bit of a stored message flips; nobody wrote.", ("", "", "message")),
)
"""What the world does to a node beyond the faults of the specifications, where the event holds something."""

ANOMALIES: Final = (
    Invariant("InconsistentOffset", "A place in a queue holds one message for ever, whoever names it."),
    Invariant("SkippedPoll", "A pull brings every message in the stretch that it passes."),
    Invariant("NonmonotonicPoll", "The messages of a pull rise, and it never leads back."),
    Invariant("AbortedRead", "A message whose sending surely failed is never consumed."),
    Invariant("DecidedIsMarked", "A half message that is decided gets its op message."),
    Invariant("HeldPullWakes", "A pull that waits is answered as soon as its message is in the queue."),
    Invariant("AnsweredWhenCalm", "An operation that nothing disturbs is answered."),
    Invariant("CommittedOffsetKept", "A group is told the offset that it committed last; after a crash, an older one."),
    Invariant("NeverEarly", "A delayed message reaches no consumer before its time."),
    Invariant("DelayedDelivered", "An acknowledged delayed message is delivered, and once if nothing crashed."),
    Invariant("BatchWhole", "The messages of a batch lie next to each other, all or none."),
    Invariant("RetriedOrDead", "A message that was sent back comes again or, after so many times, is a dead letter."),
    Invariant("FilteredPull", "A pull with a filter brings all that it wants and nothing else."),
    Invariant("RouteKnown", "When all is quiet a nameserver knows every broker that has a topic, and no other."),
    Invariant("MembersKnown", "When all is quiet a broker lists the members of a group, all of them and no other."),
    Invariant("MembersTold", "The members of a group are told when somebody joins it or leaves it."),
    Invariant("FreeQueueLent", "A queue that nobody holds is lent to whoever asks."),
    Invariant("FlushedInTime", "Without synchronous flush a record is durable after a while."),
    Invariant("BoundsExact", "A queue begins and ends where a broker says."),
    Invariant("WellFormed", "An event holds what this table says, and every one is there once, in its order."),
    Invariant("SidesAgree", "What a client is told its broker did; what a broker did for clients was asked for."),
    Invariant("NodeCoherent", "The steps of a node follow from each other."),
    Invariant("EveryMessageConsumed", "In the end every message that a group wants is consumed, or a dead letter."),
    Invariant("LeaveCommits", "Members that leave in good order have committed what they consumed."),
    Invariant("CommittedInTime", "What was consumed is committed after a few seconds."),
    Invariant("OnlyHoldersAct", "A member pulls, hands out and commits only queues that it has."),
    Invariant("ListenedIsWanted", "A listener gets messages that its group wants, from where they are stored."),
    Invariant("DeadAfterRetries", "A dead letter has failed once more than there are retries."),
    Invariant("NeverAskedEarly", "A producer is not asked about a message before its immunity is over."),
    Invariant("PullWithinLimits", "A pull brings no more messages and bytes than it asked for and a broker gives."),
    Invariant("SettingsFollow", "A setting that was changed is so; one that was refused is as before."),
    Invariant("OneAnswerPerRequest", "A request has one answer, and a one-way request none."),
    Invariant("TablesSaved", "When all is quiet the files of a broker hold what it knows."),
    Invariant("ArrangedIsSo", "What an operator arranges is so when it is read back."),
    Invariant("ConsumedWhenCalm", "In a group that nothing disturbs a message is consumed at once, and once."),
)
"""What clients see and no specification has: the families of Jepsen's kafka workload for queues, as the promises that
they break ("lost write" is AckedSurvives and has its name), and the promise of long polling."""

FIELDS: Final = {
    action.name: action.fields
    for actions in (*(each.actions for each in PROTOCOLS), NAMESERVER, DISTURBANCES)
    for action in actions
}
"""What `a`, `b`, `c`, `d` of a node's event hold. An action of two protocols has the same fields in both."""

CLIENT_FIELDS: Final = {
    "Send": ("physical_offset", "queue_offset", "message", "status"),
    "SendBatch": ("physical_offset", "queue_offset", "message", "status"),
    "SendDelayed": ("due_ms", "level", "message", "status"),
    "SendHalf": ("physical_offset", "half_offset", "message", "status"),
    "EndTransaction": ("decision", "half_offset", "message", "status"),
    "CheckReply": ("decision", "half_offset", "message"),
    "Pull": ("from_offset", "next_offset", "max_offset", "status"),
    "PullFiltered": ("from_offset", "next_offset", "wanted_classes", "status"),
    "SendBack": ("due_ms", "reconsume_times", "message", "retries_max"),
    "CommitOffset": ("before", "after", "", "status"),
    "QueryOffset": ("offset", "", "", "status"),
    "QueryRoute": ("queues",),
    "QueryKey": ("found", "others", "message"),
    "QueryBounds": ("min_offset", "max_offset"),
    "Heartbeat": (),
    "Leave": (),
    "ViewRefresh": ("found",),
    "Notified": (),
    "Ask": ("code", "", "", "status"),
    "Configure": ("wanted", "applied", "", "status"),
    "LockQueue": ("granted", "at_ms"),
    "UnlockQueue": ("", "at_ms"),
    "Produce": ("message_class", "", "message"),
    "Subscribe": ("wanted_classes", "orderly", "retries_max", "from_first"),
    "Listen": ("reconsume_times", "queue_offset", "message"),
}
"""What the events of a client's operation hold; -1 where the answer is not known yet. `Notified` is no operation: a
broker has told the client that its group changed. The last three are what an application sees of a real client: it
sends, it joins a group, its listener is called."""

INVOKED_FIELDS: Final = {
    **{name: (*CLIENT_FIELDS[name][:3], "message_class") for name in ("Send", "SendBatch", "SendDelayed")},
    "SendHalf": ("immune_until_ms", "half_offset", "message", "message_class"),
    "Pull": ("from_offset", "count_max", "max_offset", "wait_ms"),
    "PullFiltered": ("from_offset", "count_max", "wanted_classes", "wait_ms"),
}
"""Where an `invoke` knows more than its outcome: the class of the message, a number below 4 by which filters choose;
until when nobody may be asked about it; how much a pull asks for, and how long it may wait."""

CONSUMED_FIELDS: Final = ("physical_offset", "queue_offset", "message", "size_bytes")
"""What a `consumed` event holds: one message that reached a client, whatever operation brought it."""

CLIENT_OPERATIONS: Final = tuple(CLIENT_FIELDS)
"""Operations of the clients in a history. Each leaves an `invoke` event and one of the outcomes."""

CLIENT_OUTCOMES: Final = ("invoke", "ok", "fail", "unknown", "consumed")
"""`fail` means that it surely did not happen, `unknown` that nobody can know."""


def fields_of(action: str, outcome: str) -> tuple[str, ...]:
    """What the four numbers of an event hold; `outcome` is "step" for a node's, else one of `CLIENT_OUTCOMES`."""
    if outcome == "consumed":
        return CONSUMED_FIELDS
    if outcome == "invoke" and action in INVOKED_FIELDS:
        return INVOKED_FIELDS[action]
    return FIELDS.get(action, ()) if outcome == "step" else CLIENT_FIELDS.get(action, ())
