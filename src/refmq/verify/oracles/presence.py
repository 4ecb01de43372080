"""Promises about who is there: the brokers in a route, the members of a group, and that members are notified.

They are judged for questions during which, and since long enough before which, nothing disturbed the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import Finding, Line, Promises, Remembered
from refmq.verify.oracles.calm import NAMESERVER, START_NS, Quiet
from refmq.verify.oracles.partition import Partition, oracle

SECOND_NS: Final = 1_000_000_000

ROUTE_NS: Final = SECOND_NS
"""What a nameserver may take to hear of a new topic, of a connection that broke, and of a broker that leaves."""
REGISTER_NS: Final = 45 * SECOND_NS
"""After which time a broker has registered again, whatever happened: it does so every 30 s."""
EXPIRY_NS: Final = 140 * SECOND_NS
"""How long until a silent peer is forgotten: 120 s, checked every 10 s."""
TRUST_NS: Final = 110 * SECOND_NS
"""How long a sign of life certainly counts."""


@oracle(Partition.NODE)
def route_known(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """RouteKnown: a nameserver knows every broker that has the topic, and none that is gone.

    What is judged is a broker to which nothing happened for a while, or that is down for a while. Not judged is one
    whose clock was set, because its events tell no time then, or whose disk failed, because it may have ended.
    """
    has_topic: dict[tuple[str, str], tuple[int, int]] = {}  # line and time of the first message
    tried: dict[tuple[str, str], int] = {}  # line of the first sending: the topic is not new to those that come later
    down: dict[str, tuple[int, bool]] = {}  # since when, and whether without power
    calm_from: dict[str, tuple[int, int]] = {}  # line, and the time from which on the broker is in every route
    forgotten = (-1, 0)  # the same for all brokers: the nameserver was restarted
    restarted_ns = 0
    begun: Remembered[tuple[str, int], tuple[int, int]] = Remembered()  # line and time of a sending's beginning
    set_clocks: set[str] = set()
    failing: set[str] = set()
    lost: set[str] = set()  # without power, and not back since: nameservers may still believe in its connection
    for number, line in enumerate(lines):
        topic, broker, _ = line.queue
        if line.outcome == Outcome.STEP:
            match line.action:
                case "ProcessCrash" if line.node.startswith(NAMESERVER):
                    forgotten, restarted_ns = (number, line.at_ns + REGISTER_NS), line.at_ns
                case "ProcessCrash" | "PowerLoss" | "StopStore":
                    lost |= {line.node} if line.action == "PowerLoss" else set()
                    down[line.node] = (line.at_ns, line.node in lost)
                    if line.action == "PowerLoss" and not promises.flush_sync:
                        has_topic = {known: sent for known, sent in has_topic.items() if known[1] != line.node}
                case "RestartBroker" | "StopBroker":  # it unregisters before it is down
                    calm_from[line.node] = (number, line.at_ns + REGISTER_NS)
                case "StartStore":
                    down.pop(line.node, None)
                    calm_from[line.node] = (number, line.at_ns + REGISTER_NS)
                case "FinishRecovery":
                    lost.discard(line.node)
                    calm_from[line.node] = (number, line.at_ns + START_NS + ROUTE_NS)
                case "JumpClock":
                    set_clocks.add(line.node)
                case "FailFlush" | "FullDisk":
                    failing.add(line.node)
                case "Settled":
                    failing.clear()
                    forgotten = (number, max(line.at_ns, forgotten[1]))
        elif line.action in ("Send", "SendBatch") and line.outcome == Outcome.INVOKE:
            begun[line.actor, line.operation] = (number, line.at_ns)
            tried.setdefault((topic, broker), number)
        elif line.action in ("Send", "SendBatch") and line.outcome == Outcome.OK and line.status == 0:
            # The nameserver was told when the broker made the topic, which is before it answers.
            has_topic.setdefault((topic, broker), begun.get((line.actor, line.operation), (number, line.at_ns)))
        elif line.action == "QueryRoute" and line.outcome == Outcome.OK and broker not in set_clocks | failing:
            if broker in down:
                since_ns, power = down[broker]
                if line.queues and line.at_ns - since_ns > (EXPIRY_NS if power else ROUTE_NS):
                    yield Finding("RouteKnown", f"the route of {topic} has {broker}, which is gone", number)
            elif not line.queues and (topic, broker) in has_topic:
                since, at_ns = has_topic[topic, broker]
                disturbed = max(calm_from.get(broker, (-1, 0)), forgotten)
                was_up = at_ns - restarted_ns > ROUTE_NS
                is_new = min(since, tried.get((topic, broker), since)) > disturbed[0]
                is_told = is_new and was_up and line.at_ns - at_ns > ROUTE_NS
                if is_told or (line.at_ns > disturbed[1] and line.at_ns - at_ns > ROUTE_NS):
                    yield Finding("RouteKnown", f"the route of {topic} does not have {broker}", number)


@dataclass(slots=True)
class _Member:
    """What is known of one client at one broker."""

    asked: int = -1
    """The line of its last heartbeat's beginning."""
    pending: dict[int, int] = field(default_factory=dict)
    """Heartbeats that are under way: operation -> the line where it began."""
    sure: int = -1
    """The line of its last heartbeat's success."""
    sure_asked: int = -1
    """The line where that heartbeat began."""
    sure_ns: int = 0
    left: int = -1
    """The line where it last began to leave."""
    left_alone: bool = True
    """No heartbeat was in flight then: it might arrive after the client left."""
    gone: int = -1
    """The line where it had left, or where it ended."""
    gone_ns: int = 0


@dataclass(slots=True)
class _Group:
    """The members of all groups at all brokers, as events of clients tell."""

    members: dict[tuple[str, str], _Member] = field(default_factory=dict)
    """Broker and `group@client` -> what is known."""

    def of(self, broker: str, member: str) -> _Member:
        return self.members.setdefault((broker, member), _Member())

    def feed(self, number: int, line: Line) -> None:
        broker = line.queue[1]
        if line.outcome == Outcome.STEP:
            if line.action in ("ProcessCrash", "PowerLoss", "StartStore"):
                self._ended(number, line)
        elif line.action == "Heartbeat":
            member = self.of(broker, line.actor)
            if line.outcome == Outcome.INVOKE:
                member.asked = member.pending[line.operation] = number
                return
            asked = member.pending.pop(line.operation, -1)
            if line.outcome == Outcome.OK:
                member.sure, member.sure_ns, member.sure_asked = number, line.at_ns, asked
        elif line.action == "Leave":
            member = self.of(broker, line.actor)
            if line.outcome == Outcome.INVOKE:
                member.left, member.left_alone = number, not member.pending
            elif line.outcome == Outcome.OK and member.left_alone and member.asked < member.left:
                member.gone, member.gone_ns = number, line.at_ns

    def _ended(self, number: int, line: Line) -> None:
        """A client's end, or a broker's: members live in memory."""
        for (broker, name), member in self.members.items():
            if broker == line.node or node_of(name) == line.node:
                member.gone, member.gone_ns = number, line.at_ns
                member.pending.clear()

    def is_sure(self, member: _Member, last_fault: int, at_ns: int) -> bool:
        """Whether a client certainly is a member: a heartbeat succeeded, and nothing has happened since."""
        last = max(member.left, member.gone, last_fault)
        return member.sure > last and member.sure_asked > member.left and at_ns - member.sure_ns < TRUST_NS

    def is_no(self, member: _Member, last_fault: int, at_ns: int) -> bool:
        """Whether a client certainly is not a member: never was, left, ended, or has been silent too long."""
        if member.asked < 0:
            return True
        if member.pending:
            return False
        if member.gone > max(member.asked, member.sure):
            return at_ns - member.gone_ns > ROUTE_NS and last_fault <= member.gone
        return member.sure >= member.asked and at_ns - member.sure_ns > EXPIRY_NS


@oracle(Partition.NODE)
def members_known(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """MembersKnown: when all is quiet a broker lists exactly the members of a group."""
    group, quiet = _Group(), Quiet()
    asked: Remembered[tuple[str, int], int] = Remembered()
    for number, line in enumerate(lines):
        quiet.feed(number, line)
        group.feed(number, line)
        if line.action != "ViewRefresh":
            continue
        if line.outcome == Outcome.INVOKE:
            asked[line.actor, line.operation] = number
        elif line.outcome == Outcome.OK:
            begun = asked.get((line.actor, line.operation), number)
            who, broker, _ = line.queue
            member, last_fault = group.of(broker, who), quiet.last_fault(broker, node_of(who))
            overlaps = max(member.asked, member.left, last_fault) > begun
            if overlaps or quiet.is_broken(broker, node_of(who)) or not quiet.expects(line):
                continue
            if not line.found and member.sure < begun and group.is_sure(member, last_fault, line.at_ns):
                yield Finding("MembersKnown", f"{broker} does not list {who}, which is a member", number)
            elif line.found and group.is_no(member, last_fault, line.at_ns):
                yield Finding("MembersKnown", f"{broker} lists {who}, which is not a member", number)


def node_of(member: str) -> str:
    """The node on which `group@client` lives; a client's name is that of its node and the number of its life."""
    return member.partition("@")[2].rpartition(".")[0]


@oracle(Partition.NODE)
def members_told(lines: Iterable[Line], promises: Promises) -> Iterator[Finding]:
    """MembersTold: when a client joins or leaves a group, or is lost, its other members are notified immediately."""
    group, quiet = _Group(), Quiet()
    owed: dict[tuple[str, str], tuple[int, int, str]] = {}  # broker and member -> line, time and cause of the change
    for number, line in enumerate(lines):
        quiet.feed(number, line)
        broker = line.queue[1]
        for key, (since, at_ns, cause) in list(owed.items()):
            if quiet.last_fault(key[0], node_of(key[1]), node_of(cause)) > since:
                del owed[key]
            elif line.at_ns - at_ns > ROUTE_NS:
                del owed[key]
                yield Finding("MembersTold", f"{key[1]} was not told by {key[0]} that its group changed", number)
        known = group.members.get((broker, line.actor), _Member())
        last_fault, begins = quiet.last_fault_of(line), line.outcome == Outcome.INVOKE
        joins = begins and line.action == "Heartbeat" and group.is_no(known, last_fault, line.at_ns)
        leaves = begins and line.action == "Leave" and group.is_sure(known, last_fault, line.at_ns)
        is_lost = line.action == "RemoveMember" and line.outcome == Outcome.STEP and not quiet.is_broken(broker)
        if ((joins or leaves) and quiet.expects(line)) or is_lost:
            who = f"{line.subject}@{line.actor}" if is_lost else line.actor
            for (where, name), other in group.members.items():
                same = where == broker and name != who and name.partition("@")[0] == who.partition("@")[0]
                struck = quiet.last_fault(broker, node_of(name))
                if same and not quiet.is_broken(node_of(name)) and group.is_sure(other, struck, line.at_ns):
                    owed[where, name] = (number, line.at_ns, who)
        elif line.action in ("Notified", "Leave", "Heartbeat"):
            if line.action != "Heartbeat":
                owed.pop((broker, line.actor), None)
            if line.action == "Heartbeat" and line.outcome in (Outcome.FAIL, Outcome.UNKNOWN):
                owed = {key: change for key, change in owed.items() if key[0] != broker}
        group.feed(number, line)
