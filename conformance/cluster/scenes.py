"""Scenes: steps that belong together. What a mistake needs to show, and chance would hardly ever put in a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from conformance.cluster import history as h

Pick = Callable[[int, int], int]
"""A number from a range, both ends included; the smaller, the simpler."""

EFFECTS_MAX: Final = 40
"""A planned crash falls within so many effects: a send has about five."""

ALL: Final = 200
"""So many messages are more than a queue has."""


def _crash(pick: Pick, broker: int, effects: int = 0, at: str = "") -> h.Step:
    return (h.ProcessCrash(broker, effects, at), h.PowerLoss(broker, effects, at))[pick(0, 1)]


def crowd(pick: Pick) -> list[h.Step]:
    """Everybody reads one queue to its end and waits there, and somebody sends to it."""
    broker, queue = pick(0, 1), pick(0, 1)
    reading: list[h.Step] = [h.Pull(client, broker, queue, ALL) for client in range(3)]
    waiting: list[h.Step] = [h.Pull(client, broker, queue, 4, 20_000) for client in range(3)]
    sent = h.Send(pick(0, 2), broker, queue, pick(1, 3))
    return [*reading, h.AdvanceClock(100), *waiting, h.AdvanceClock(100), sent, h.AdvanceClock(3_000)]


def passed_over(pick: Pick) -> list[h.Step]:
    """Somebody waits for messages of one kind while others come."""
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    wanted: h.Wanted = ("tag a", "sql tag")[pick(0, 1)]
    reads, waits = (h.Pull(client, broker, queue, ALL, wait_ms, wanted=wanted) for wait_ms in (0, 20_000))
    sent = h.Send(pick(0, 2), broker, queue)
    return [reads, h.AdvanceClock(100), waits, h.AdvanceClock(100), sent, h.AdvanceClock(10_000)]


def overdue(pick: Pick) -> list[h.Step]:
    """More delayed messages than a queue file holds become due while their broker is down."""
    broker, queue = pick(0, 1), pick(0, 1)
    sent = h.Send(pick(0, 2), broker, queue, (3, 70)[pick(0, 1)], delay_level=3)
    return [sent, h.AdvanceClock(1_000), h.StopBroker(broker), h.AdvanceClock(10_000), h.RestartBroker(broker)]


def delivered_before_a_stop(pick: Pick) -> list[h.Step]:
    """A broker is stopped in good order soon after it delivered a delayed message."""
    broker = pick(0, 1)
    sent = h.Send(pick(0, 2), broker, pick(0, 1), pick(1, 3), delay_level=1)
    return [sent, h.AdvanceClock((1_100, 1_500, 3_000)[pick(0, 2)]), h.RestartBroker(broker), h.AdvanceClock(100)]


def no_room_to_deliver(pick: Pick) -> list[h.Step]:
    """The disk is full at the moment at which a delayed message is due."""
    broker = pick(0, 1)
    sent = h.Send(pick(0, 2), broker, pick(0, 1), pick(1, 2), delay_level=1)
    return [sent, h.AdvanceClock(900), h.FullDisk(broker, pick(0, 5)), h.AdvanceClock(3_000)]


def no_room_to_end(pick: Pick) -> list[h.Step]:
    """The disk is full now and then while a transaction ends, or while its producer is asked."""
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    answers: tuple[h.Decision, ...] = ("commit", "rollback", "unknown", "none")
    half = h.SendHalf(client, broker, queue, answers[pick(0, 3)], answers[pick(0, 3)])
    full: list[h.Step] = [h.FullDisk(broker, pick(0, EFFECTS_MAX)) for _ in range(3)]
    return [h.Heartbeat(client, broker), *full, half, h.AdvanceClock(5_000)]


def late_decision(pick: Pick) -> list[h.Step]:
    """A decision comes when its half message is gone with the power, and another one may be in its place."""
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    late = h.SendHalf(client, broker, queue, "commit", ("commit", "rollback")[pick(0, 1)], after_ms=2_000)
    other = h.SendHalf(pick(0, 2), broker, queue, "none", ("rollback", "commit")[pick(0, 1)])
    return [late, h.AdvanceClock(20), h.PowerLoss(broker), h.RestartBroker(broker), h.AdvanceClock(100), other]


def dies_deciding(pick: Pick) -> list[h.Step]:
    """A broker dies while a transaction ends."""
    client, broker = pick(0, 2), pick(0, 1)
    half = h.SendHalf(client, broker, pick(0, 1), "commit", ("commit", "rollback")[pick(0, 1)], after_ms=50)
    crash = _crash(pick, broker, pick(1, 8))
    return [half, h.AdvanceClock(49), crash, h.AdvanceClock(200), h.RestartBroker(broker), h.AdvanceClock(3_000)]


def dies_in_a_round(pick: Pick) -> list[h.Step]:
    """A broker dies while it looks through the halves that nobody has decided."""
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    halves: list[h.Step] = [h.SendHalf(client, broker, queue, "none", "unknown") for _ in range(2)]
    wait = h.AdvanceClock((1_000, 2_000, 6_000)[pick(0, 2)])
    crash = _crash(pick, broker, pick(1, 6))
    return [h.Heartbeat(client, broker), *halves, wait, crash, h.AdvanceClock(1_100), h.RestartBroker(broker)]


OF_TRANSACTIONS: Final = (
    *("EndTransaction", "WriteOp", "RoundStart", "PullOps", "HalfRemoved", "HalfDiscard", "HalfImmune"),
    *("HalfRenewAndCheck", "RoundFinish", "PersistProgress"),
)


def dies_at_a_step(pick: Pick) -> list[h.Step]:
    """A broker dies right behind a step with which it looks after halves, or saves how far it has come."""
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    at = OF_TRANSACTIONS[pick(0, len(OF_TRANSACTIONS) - 1)]
    decided = h.SendHalf(client, broker, queue, ("commit", "rollback")[pick(0, 1)], after_ms=(0, 1_500)[pick(0, 1)])
    open_ = h.SendHalf(client, broker, queue, "none", "unknown", immunity_s=3 if at == "HalfImmune" else 0)
    crash = _crash(pick, broker, pick(0, 1), at)
    steps: list[h.Step] = [h.Heartbeat(client, broker), crash, open_, decided, h.AdvanceClock(8_000)]
    return [*steps, h.RestartBroker(broker), h.AdvanceClock(2_500)]


def stopped_in_a_round(pick: Pick) -> list[h.Step]:
    """A broker is stopped in good order while it waits for its disk in the middle of a check round: it makes the topic
    for a half message about which it has asked often enough."""
    client, broker = pick(0, 2), pick(0, 1)
    half = h.SendHalf(client, broker, pick(0, 1), "none", "unknown")
    waits = h.AdvanceClock(500 + 100 * pick(0, 4))
    steps: list[h.Step] = [h.Heartbeat(client, broker), half, h.AdvanceClock(5_500), h.SlowDisk(broker, 700), waits]
    dies: list[h.Step] = [_crash(pick, broker, 0, "RoundAbort")] if pick(0, 1) else []
    steps += [*dies, h.RestartBroker(broker), h.SlowDisk(broker, 0), h.AdvanceClock(2_000)]
    again: list[h.Step] = [h.RestartBroker(broker), h.AdvanceClock(1_000)]
    return [*steps, *(again if dies else [])]


def dies_with_a_lock(pick: Pick) -> list[h.Step]:
    """A broker dies right behind a step that gave a queue away, or took it back, and somebody else asks for it."""
    broker, at = pick(0, 1), ("LockQueue", "UnlockQueue", "LoanExpire")[pick(0, 2)]
    crash = _crash(pick, broker, 0, at)
    wait = h.AdvanceClock(61_000 if at == "LoanExpire" else 100)
    steps: list[h.Step] = [crash, h.LockQueue(0, broker), wait, h.UnlockQueue(0, broker), h.LockQueue(1, broker)]
    return [*steps, h.AdvanceClock(100), h.RestartBroker(broker), h.AdvanceClock(1_000), h.LockQueue(2, broker)]


def dies_with_offsets(pick: Pick) -> list[h.Step]:
    """A broker dies right behind a commit, or when it has saved what was committed."""
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    at = ("CommitOffset", "PersistOffsets")[pick(0, 1)]
    crash = _crash(pick, broker, pick(0, 1), at)
    steps: list[h.Step] = [h.Send(client, broker, queue), h.AdvanceClock(100), h.Pull(client, broker, queue), crash]
    steps += [h.CommitOffset(client, broker, queue), h.AdvanceClock((100, 6_000)[pick(0, 1)])]
    return [*steps, h.RestartBroker(broker), h.AdvanceClock(1_000), h.QueryOffset(client, broker, queue)]


def dies_rolling(pick: Pick) -> list[h.Step]:
    """A broker dies when it has begun another file of its log."""
    broker = pick(0, 1)
    crash = _crash(pick, broker, 0, "RollFile")
    sent: list[h.Step] = [h.Send(client, broker, pick(0, 1), 4, 3_000) for client in range(3)]
    return [crash, *sent * 2, h.AdvanceClock(1_000), h.RestartBroker(broker), h.AdvanceClock(1_000)]


def dies_starting(pick: Pick) -> list[h.Step]:
    """A broker that died under way dies again right behind a step of its start."""
    broker = pick(0, 1)
    at = ("StartStore", "ScanLog", "TruncateQueue", "TruncateLog", "FinishRecovery")[pick(0, 4)]
    again = _crash(pick, broker, 0, at)
    sent: list[h.Step] = [h.Send(client, broker, pick(0, 1), 4) for client in range(2)]
    deaths: list[h.Step] = [
        _crash(pick, broker),
        again,
        h.RestartBroker(broker),
        h.AdvanceClock(200),
        h.RestartBroker(broker),
    ]
    return [*sent, h.AdvanceClock((3, 20, 1_100)[pick(0, 2)]), *deaths, h.AdvanceClock(1_000)]


def immune(pick: Pick) -> list[h.Step]:
    """Nobody decides, and the broker has to wait for a while until it may ask."""
    client, broker = pick(0, 2), pick(0, 1)
    half = h.SendHalf(client, broker, pick(0, 1), "none", "commit", immunity_s=(2, 4)[pick(0, 1)])
    return [h.Heartbeat(client, broker), half, h.AdvanceClock(6_000)]


def damaged(pick: Pick) -> list[h.Step]:
    """One of several messages that a broker keeps for later can no longer be read, or one that everybody reads."""
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    if pick(0, 2) == 2:
        sent, reads = h.Send(client, broker, queue, pick(1, 2), 300), h.Pull(client, broker, queue, ALL)
        steps: list[h.Step] = [sent, h.AdvanceClock(100), h.FlipBit(broker, "plain"), reads, h.AdvanceClock(100)]
        steps += [(h.QueryKey(client, broker), h.SendBack(client, broker, queue))[pick(0, 1)], h.AdvanceClock(100)]
        return [*steps, sent, h.AdvanceClock(100), reads, h.AdvanceClock(2_000)]
    if pick(0, 1):
        kept: h.Step = h.Send(client, broker, queue, pick(1, 2), delay_level=pick(1, 2))
        flip = h.FlipBit(broker, "delayed")
    else:
        kept, flip = h.SendHalf(client, broker, queue, "none", "commit"), h.FlipBit(broker, "half")
    return [h.Heartbeat(client, broker), kept, h.AdvanceClock(100), flip, kept, h.AdvanceClock(3_000)]


def plenty(pick: Pick) -> list[h.Step]:
    """Somebody wants more messages than a broker gives at once."""
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    sent: list[h.Step] = [h.SendBatch(client, broker, queue, 20), h.SendBatch(client + 1, broker, queue, 20)]
    return [*sent, h.AdvanceClock(100), h.Pull(pick(0, 2), broker, queue, (33, ALL)[pick(0, 1)])]


def reads_slowly(pick: Pick) -> list[h.Step]:
    """Somebody asks for much and reads it slowly, so that the broker must wait, and asks again when that is over."""
    client, broker, queue = pick(0, 2), pick(0, 1), pick(0, 1)
    sent, slow = h.Send(client, broker, queue, 4, 3_000), h.SlowReader(client, (500, 5_000)[pick(0, 1)])
    reads: list[h.Step] = [h.Pull(client, broker, queue, 8) for _ in range(2)]
    return [sent, h.AdvanceClock(100), slow, *reads, h.AdvanceClock(10_000), h.QueryBounds(client, broker, queue)]


def found_soon(pick: Pick) -> list[h.Step]:
    """Somebody looks for a topic soon after its first message."""
    sent = h.Send(pick(0, 2), pick(0, 1), pick(0, 1))
    return [sent, h.AdvanceClock(1_500), h.QueryRoute(pick(0, 2))]


def one_goes(pick: Pick) -> list[h.Step]:
    """Several wait for messages, and the connection of one of them ends before any come."""
    broker, queue, gone = pick(0, 1), pick(0, 1), pick(0, 2)
    reading: list[h.Step] = [h.Pull(client, broker, queue, ALL) for client in range(3)]
    waiting: list[h.Step] = [h.Pull(client, broker, queue, 4, 20_000) for client in range(3)]
    sent = h.Send(gone + 1, broker, queue)
    return [*reading, h.AdvanceClock(100), *waiting, h.AdvanceClock(100), h.Disconnect(gone, broker), *_pause(), sent]


def _pause() -> list[h.Step]:
    return [h.AdvanceClock(1_000)]


def slow_flush(pick: Pick) -> list[h.Step]:
    """The disk takes longer for a flush than a producer may be kept waiting, and then the power goes."""
    broker, queue = pick(0, 1), pick(0, 1)
    slow = h.SlowDisk(broker, (700, 1_500, 1_500)[pick(0, 2)])
    return [slow, h.Send(pick(0, 2), broker, queue, pick(1, 3), at_once=True), h.AdvanceClock(1_300)]


def kept_alive(pick: Pick) -> list[h.Step]:
    """A member sends its heartbeats for longer than one of them lasts, and another one looks who is there."""
    client, broker = pick(0, 2), pick(0, 1)
    beats: list[h.Step] = [h.Heartbeat(client, broker, pick(0, 1) == 1), h.AdvanceClock(31_000)]
    return [h.Heartbeat(client, broker), *beats * 5, h.ViewRefresh(client + 1, broker)]
