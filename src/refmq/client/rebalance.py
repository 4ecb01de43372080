"""The steps of a consumer: the client actions of `spec/rebalance`, under their names.

| action         | step             | who asks for it                                              |
|----------------|------------------|--------------------------------------------------------------|
| ViewRefresh    | `view_refresh`   | a member list was read from a broker                         |
| RouteRefresh   | `route_refresh`  | a route was read from a nameserver                           |
| ReleaseQueue   | `release_queue`  | rebalance: a queue is no longer in the share                 |
| AcquireQueue   | `acquire_queue`  | rebalance: a queue of the share is taken, its offset known   |
| PullMessages   | `pull_messages`  | the answer to a pull                                         |
| ConsumeStart   | `consume_start`  | a message goes to a listener                                 |
| ConsumeFinish  | `consume_finish` | a listener is done                                           |
| CommitSend     | `commit_send`    | every five seconds                                           |
| LockQueue      | `lock_queue`     | the answer to a lock request (the client's half)             |
| TrustExpire    | `trust_expire`   | thirty seconds without an answer                             |
| Leave          | `leave`          | the consumer closes                                          |

Where 4.9.8 has a window through which messages are lost, skipped or consumed out of order, the repair of the
specification is built in; none of them can be noticed by Java members of the same group:

| repair           | here                                                                                          |
|------------------|-----------------------------------------------------------------------------------------------|
| CommitStart      | a queue without a committed offset gets one before its first pull (W-06)                      |
| QueryErrorKnown  | only "not found" means that there is no offset; after any other error the queue waits (W-07)  |
| CancelUnlock     | a loan is given back when the last listener ends, never later (W-13, W-15)                    |
| LeaveWaits       | `leave` is enabled when no listener runs (W-24)                                               |
| ListenerBounded  | a listener is cancelled when the trust in its lock ends (W-16)                                |

`seek_queue` and `correct_offset` have no action in Rebalance.tla: they are resets, of an application or of a broker
whose queue begins or ends elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from rpds import HashTrieMap

from refmq.client.allocate import allocate_averagely
from refmq.client.allocate_rooms import Strategy
from refmq.client.process_queue import ProcessQueue, finish, first_cached, put_pulled, start
from refmq.errors import RefmqError
from refmq.model.ids import MessageQueue
from refmq.model.step import Event, Step

TRUST_MS: Final = 30_000
"""How long a client relies on a lock without a renewal (rebalance.lockMaxLiveTime); the broker lends for 60 s."""


@dataclass(frozen=True, slots=True)
class SendCommit:
    """Effect: tell the broker (or the file) up to where a queue is consumed. ``first`` has to be known to be stored
    before the effects after it: it is the group's first offset in this queue."""

    queue: MessageQueue
    offset: int
    first: bool = False


@dataclass(frozen=True, slots=True)
class GiveBack:
    """Effect: end the loan of a queue."""

    queue: MessageQueue


@dataclass(frozen=True, slots=True)
class StartPulling:
    """Effect: a queue is ours; pull from it."""

    queue: MessageQueue


@dataclass(frozen=True, slots=True)
class StopPulling:
    """Effect: a queue is not ours any more; forget its messages."""

    queue: MessageQueue


Effect: TypeAlias = SendCommit | GiveBack | StartPulling | StopPulling
MemberStep: TypeAlias = "Step[Member, Effect]"


@dataclass(frozen=True, slots=True)
class Member:
    """One consumer of a group."""

    group: str
    client_id: str
    orderly: bool = False
    shares: bool = True
    """Clustering: the queues are shared. Otherwise (broadcasting) everybody has all of them."""
    strategy: Strategy = allocate_averagely
    left: bool = False
    routes: HashTrieMap[str, tuple[MessageQueue, ...]] = field(default_factory=HashTrieMap)
    views: HashTrieMap[str, tuple[str, ...]] = field(default_factory=HashTrieMap)
    held: HashTrieMap[MessageQueue, ProcessQueue] = field(default_factory=HashTrieMap)
    trust: HashTrieMap[MessageQueue, int] = field(default_factory=HashTrieMap)
    """Queue -> until when (ms of the client's own clock) we rely on its lock."""

    @property
    def actor(self) -> str:
        return f"{self.group}@{self.client_id}"

    @property
    def locks(self) -> bool:
        """Whether queues are locked at the broker: when they are consumed in order and shared."""
        return self.orderly and self.shares


def share(member: Member, topic: str) -> tuple[MessageQueue, ...] | None:
    """The queues of a topic that belong to this member, or None as long as it cannot know.

    A strategy that cannot say (a room without a name, an empty list) changes nothing.
    """
    queues = member.routes.get(topic)
    if queues is None:
        return None
    if not member.shares:
        return queues
    view = member.views.get(topic)
    if not view or not queues:
        return None if not view else ()
    try:
        return tuple(member.strategy(member.client_id, sorted(queues), sorted(view)))
    except RefmqError:
        return None


def in_share(member: Member, queue: MessageQueue) -> bool:
    mine = share(member, queue.topic)
    return mine is not None and queue in mine


def trusts(member: Member, queue: MessageQueue, now_ms: int) -> bool:
    """Whether the lock of a queue can be relied upon."""
    return not member.locks or member.trust.get(queue, -1) > now_ms


def to_release(member: Member) -> tuple[MessageQueue, ...]:
    """The queues that a rebalance gives up now. A share that nobody knows gives up nothing."""
    return tuple(sorted(queue for queue in member.held if release_queue_enabled(member, queue)))


def to_acquire(member: Member, topics: Iterable[str]) -> tuple[MessageQueue, ...]:
    """The queues that a rebalance takes."""
    found: list[MessageQueue] = []
    for topic in topics:
        found += [queue for queue in share(member, topic) or () if queue not in member.held]
    return tuple(sorted(found))


def _holding(member: Member, queue: MessageQueue, held: ProcessQueue) -> Member:
    """The member with another state of one queue. Built anew and not by `replace`, which takes three times as long:
    every message comes this way twice."""
    return Member(
        member.group,
        member.client_id,
        member.orderly,
        member.shares,
        member.strategy,
        member.left,
        member.routes,
        member.views,
        member.held.insert(queue, held),
        member.trust,
    )


def _event(member: Member, action: str, queue: MessageQueue, a: int = 0, b: int = 0, c: int = 0) -> Event:
    return Event(action, member.actor, f"{queue.topic}@{queue.broker}", queue.queue_id, a=a, b=b, c=c)


# ViewRefresh, RouteRefresh ------------------------------------------------------------------------------------------


def view_refresh(member: Member, topic: str, ids: Sequence[str]) -> MemberStep:
    # Enabled: a broker that knows nobody has answered with an error, and the old list stays.
    if member.left or not ids:
        return Step(member)
    after = replace(member, views=member.views.insert(topic, tuple(ids)))
    return Step(after, (), Event("ViewRefresh", member.actor, topic, a=len(ids)))


def route_refresh(member: Member, topic: str, queues: Sequence[MessageQueue]) -> MemberStep:
    # Enabled
    if member.left or member.routes.get(topic) == tuple(queues):
        return Step(member)
    after = replace(member, routes=member.routes.insert(topic, tuple(queues)))
    return Step(after, (), Event("RouteRefresh", member.actor, topic, a=len(queues)))


def unsubscribe(member: Member, topic: str) -> Member:
    """Forgets a topic: its queues are in no share any more, and a rebalance gives them up in good order (W-22)."""
    return replace(member, routes=member.routes.insert(topic, ()), views=member.views.discard(topic))


# ReleaseQueue -------------------------------------------------------------------------------------------------------


def release_queue_enabled(member: Member, queue: MessageQueue) -> bool:
    held = member.held.get(queue)
    if held is None or member.left:
        return False
    if held.dropped:  # given up already, but for the loan: that ends with the last listener
        return not held.running
    if member.routes.get(queue.topic) == ():
        return True
    mine = share(member, queue.topic)
    return mine is not None and queue not in mine


def release_queue(member: Member, queue: MessageQueue) -> MemberStep:
    # Enabled
    if not release_queue_enabled(member, queue):
        return Step(member)
    # Next
    held = member.held[queue]
    assert held.memory is None or not held.dropped, "what was given up commits nothing more"
    commit = (SendCommit(queue, held.memory),) if held.memory is not None else ()
    event = _event(member, "ReleaseQueue", queue, -1 if held.memory is None else held.memory)
    if member.locks and held.running:
        # The loan stays ours until the listener ends; what it does then does not count any more.
        after = replace(member, held=member.held.insert(queue, replace(held, dropped=True, memory=None)))
        return Step(after, (*commit, StopPulling(queue)), event)
    after = replace(member, held=member.held.remove(queue), trust=member.trust.discard(queue))
    # Effects: the offset is on its way before anybody else can have the queue.
    give_back = (GiveBack(queue),) if member.locks else ()
    return Step(after, (*commit, StopPulling(queue), *give_back), event)


# AcquireQueue -------------------------------------------------------------------------------------------------------


def acquire_queue_enabled(member: Member, queue: MessageQueue, now_ms: int) -> bool:
    return not member.left and queue not in member.held and in_share(member, queue) and trusts(member, queue, now_ms)


def acquire_queue(member: Member, queue: MessageQueue, begin: int, *, committed: bool, now_ms: int) -> MemberStep:
    """``begin`` is the committed offset, or where the group begins when nothing is ``committed``."""
    # Enabled
    if not acquire_queue_enabled(member, queue, now_ms):
        return Step(member)
    assert begin >= 0, "a queue begins at 0 or later"
    # Next
    after = replace(member, held=member.held.insert(queue, ProcessQueue(begin, memory=begin)))
    # Effects
    first = () if committed else (SendCommit(queue, begin, first=True),)
    return Step(after, (*first, StartPulling(queue)), _event(member, "AcquireQueue", queue, begin))


# PullMessages -------------------------------------------------------------------------------------------------------


def pull_messages_enabled(member: Member, queue: MessageQueue, from_offset: int) -> bool:
    """An answer counts when it is to the pull that comes next: not for a dropped queue, not from before a seek."""
    held = member.held.get(queue)
    return held is not None and not held.dropped and not member.left and held.next_offset == from_offset


def pull_messages(
    member: Member, queue: MessageQueue, from_offset: int, next_offset: int, messages: Sequence[tuple[int, int]]
) -> MemberStep:
    """``messages`` are the offsets and sizes of what is wanted of ``from_offset`` .. ``next_offset`` - 1."""
    # Enabled
    if not pull_messages_enabled(member, queue, from_offset) or next_offset < from_offset:
        return Step(member)
    # Next
    held = put_pulled(member.held[queue], messages, next_offset)
    after = replace(member, held=member.held.insert(queue, held))
    return Step(after, (), _event(member, "PullMessages", queue, from_offset, next_offset))


# ConsumeStart, ConsumeFinish ----------------------------------------------------------------------------------------


def consume_start_enabled(member: Member, queue: MessageQueue, offset: int, now_ms: int) -> bool:
    held = member.held.get(queue)
    if held is None or held.dropped or member.left or offset not in held.cached or offset in held.running:
        return False
    if not member.orderly:
        return True
    return trusts(member, queue, now_ms) and not held.running and offset == first_cached(held)


def consume_start(member: Member, queue: MessageQueue, offset: int, now_ms: int, message: int = 0) -> MemberStep:
    # Enabled
    if not consume_start_enabled(member, queue, offset, now_ms):
        return Step(member)
    # Next
    after = _holding(member, queue, start(member.held[queue], offset))
    return Step(after, (), _event(member, "ConsumeStart", queue, offset, message))


def consume_finish_enabled(member: Member, queue: MessageQueue, offset: int) -> bool:
    held = member.held.get(queue)
    return held is not None and offset in held.running


def consume_finish(member: Member, queue: MessageQueue, offset: int, *, success: bool, message: int = 0) -> MemberStep:
    """Success is also: handed to the retry topic or to the dead letters."""
    # Enabled
    if not consume_finish_enabled(member, queue, offset):
        return Step(member)
    # Next
    after = _holding(member, queue, finish(member.held[queue], offset, success=success))
    return Step(after, (), _event(member, "ConsumeFinish", queue, offset, message, 0 if success else 1))


# CommitSend ---------------------------------------------------------------------------------------------------------


def commit_send_enabled(member: Member, queue: MessageQueue) -> bool:
    held = member.held.get(queue)
    return held is not None and not held.dropped and not member.left and held.memory is not None


def commit_send(member: Member, queue: MessageQueue) -> MemberStep:
    # Enabled
    if not commit_send_enabled(member, queue):
        return Step(member)
    # Effects
    offset = member.held[queue].memory
    assert offset is not None
    return Step(member, (SendCommit(queue, offset),), _event(member, "CommitSend", queue, offset))


# LockQueue, TrustExpire ---------------------------------------------------------------------------------------------


def lock_queue(member: Member, queue: MessageQueue, *, granted: bool, asked_at_ms: int) -> Member:
    """What a client does with the answer to its lock request; the event of the action is the broker's.

    Trust is counted from when the client asked: the broker's sixty seconds began later than that.
    """
    if not granted:
        return replace(member, trust=member.trust.discard(queue))
    return replace(member, trust=member.trust.insert(queue, asked_at_ms + TRUST_MS))


def trust_expire(member: Member, queue: MessageQueue, now_ms: int) -> MemberStep:
    # Enabled
    if queue not in member.trust or member.trust[queue] > now_ms:
        return Step(member)
    after = replace(member, trust=member.trust.remove(queue))
    return Step(after, (), _event(member, "TrustExpire", queue))


# Leave --------------------------------------------------------------------------------------------------------------


def leave_enabled(member: Member) -> bool:
    """No listener may still be at work: what it does would count for nothing, and its queue would be another's."""
    return not member.left and not any(held.running for held in member.held.values())


def leave(member: Member) -> MemberStep:
    # Enabled
    if not leave_enabled(member):
        return Step(member)
    # Next
    after = replace(member, left=True, held=HashTrieMap(), trust=HashTrieMap())
    # Effects
    effects: list[Effect] = []
    for queue in sorted(member.held):
        held = member.held[queue]
        if held.memory is not None:
            effects.append(SendCommit(queue, held.memory))
        effects.append(StopPulling(queue))
        if member.locks:
            effects.append(GiveBack(queue))
    return Step(after, tuple(effects), Event("Leave", member.client_id, member.group))


def abandon(member: Member) -> Member:
    """For a shutdown whose time is up: forgets what is in the hands of listeners, so that ``leave`` is enabled.

    Their messages stay uncommitted and come again, to whoever has the queue then.
    """
    held = member.held
    for queue in member.held:
        if member.held[queue].running:
            held = held.insert(queue, replace(member.held[queue], running=ProcessQueue(0).running))
    return replace(member, held=held)


# Resets -------------------------------------------------------------------------------------------------------------


def seek_queue(member: Member, queue: MessageQueue, offset: int) -> MemberStep:
    """An application goes to another place in a queue: what was pulled is forgotten, the offset to commit is there."""
    if queue not in member.held or member.held[queue].dropped or member.left or offset < 0:
        return Step(member)
    after = replace(member, held=member.held.insert(queue, ProcessQueue(offset, memory=offset)))
    return Step(after, (StopPulling(queue), SendCommit(queue, offset), StartPulling(queue)))


def correct_offset(member: Member, queue: MessageQueue, from_offset: int, to_offset: int) -> MemberStep:
    """A broker says that the queue does not have ``from_offset`` (any more, or yet) and where it goes on."""
    if not pull_messages_enabled(member, queue, from_offset) or to_offset < 0:
        return Step(member)
    held = member.held[queue]
    memory = held.memory
    if to_offset < from_offset:
        memory = to_offset if memory is None else min(memory, to_offset)  # the queue has become shorter
    elif not held.cached:
        memory = to_offset  # what lay in between is gone for everybody
    after = replace(member, held=member.held.insert(queue, replace(held, next_offset=to_offset, memory=memory)))
    return Step(after)
