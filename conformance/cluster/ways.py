"""The forms in which steps and settings of a cluster come, in words for the coverage.

That a kind of step was taken says little where it has forms: one lock for all queues, a decision that comes late, a
stranger of each sort. A campaign that never took one of them has an empty cell.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final, get_args

from conformance.cluster import history as h
from conformance.cluster.administration import DAMAGES, OF_NAMESERVERS, REQUESTS
from conformance.cluster.stranger import WAYS
from refmq.trace.record import Outcome
from refmq.verify.oracles import Line

SETTINGS: Final[dict[str, Callable[[h.Setting], bool]]] = {
    "addresses of 16 bytes": lambda s: s.ipv6,
    "two nameservers, one of them silent": lambda s: s.silent_nameserver,
    "two requests in flight": lambda s: s.in_flight_max > 0,
    "tiny write buffers": lambda s: s.write_buffer_bytes > 0,
    "asynchronous flush": lambda s: not s.sync_flush,
    "brokers that ask before they register": lambda s: not s.force_register,
}

FORMS: Final[dict[str, Callable[[h.Step], bool]]] = {
    "requests at once": lambda s: isinstance(s, h.Send) and s.at_once and s.count > 1,
    "an empty body": lambda s: isinstance(s, h.Send) and not s.body_bytes,
    "a pull of a retry topic": lambda s: isinstance(s, h.Pull) and s.retry,
    "a pull that commits": lambda s: isinstance(s, h.Pull) and s.commit,
    "all queues in one lock request": lambda s: isinstance(s, h.LockQueue) and s.every,
    "all queues in one unlock request": lambda s: isinstance(s, h.UnlockQueue) and s.every,
    "an immunity time": lambda s: isinstance(s, h.SendHalf) and s.immunity_s > 0,
    "a delay of a half message": lambda s: isinstance(s, h.SendHalf) and s.delay_level > 0,
    "a clock set back by minutes": lambda s: isinstance(s, h.JumpClock) and s.by_ms < -60_000,
    "a decision that comes twice": lambda s: isinstance(s, h.SendHalf) and s.ends > 1,
    "a commit of less": lambda s: isinstance(s, h.CommitOffset) and s.back > 0,
    "a flush slower than a producer waits": lambda s: isinstance(s, h.SlowDisk) and s.by_ms > 1_000,
    "a setting that is refused": lambda s: isinstance(s, h.Configure) and s.value < 0,
    "a clock set back": lambda s: isinstance(s, h.JumpClock) and s.by_ms < 0,
    "only answers cut off": lambda s: isinstance(s, h.Cut) and s.answers_only,
    "a heartbeat for one group": lambda s: isinstance(s, h.Heartbeat) and s.alone,
}

AFTER_THE_POWER: Final = "a decision on a half message from before a loss of power"
CROWDED: Final = "requests at once, and tiny write buffers"


def forms_wanted() -> Iterator[str]:
    """What a campaign should take."""
    yield from (*SETTINGS, *FORMS, AFTER_THE_POWER, CROWDED)
    yield from (f"a pull of {wanted}" for wanted in get_args(h.Wanted))
    yield from (f"a flipped bit of a {what} message" for what in get_args(h.Stored))
    yield from (f"a stranger's {way.__name__.strip('_')} at a {who}" for who in _AT for way in WAYS)
    yield from (f"the whole request {code.name}" for code in REQUESTS)
    yield from (f"the whole request {code.name} to a nameserver" for code in OF_NAMESERVERS)
    yield from (f"{what} arranged" for what in get_args(h.Arranged))
    yield from (f"a decision with a wrong {wrong}" for wrong in get_args(h.Forged))
    yield from (f"a request with damage {number}" for number in range(1, len(DAMAGES)))


_AT: Final = ("broker", "nameserver")


def forms_of(history: h.History, lines: Iterable[Line], flipped: Counter[h.Stored]) -> Counter[str]:
    """What was taken in a history. `flipped` counts the bits that were there to be flipped."""
    found = Counter(word for word, is_so in SETTINGS.items() if is_so(history.setting))
    for step in history.steps:
        found.update(word for word, is_so in FORMS.items() if is_so(step))
        match step:
            case h.Pull():
                found[f"a pull of {step.wanted}"] += 1
            case h.Intrude():
                way = WAYS[step.way % len(WAYS)].__name__.strip("_")
                found[f"a stranger's {way} at a {_AT[step.nameserver]}"] += 1
            case h.Ask():
                code, damage = REQUESTS[step.number % len(REQUESTS)], step.damage % len(DAMAGES)
                found[f"a request with damage {damage}" if damage else f"the whole request {code.name}"] += 1
            case h.AskNameserver():
                code, damage = OF_NAMESERVERS[step.number % len(OF_NAMESERVERS)], step.damage % len(DAMAGES)
                whole = f"the whole request {code.name} to a nameserver"
                found[f"a request with damage {damage}" if damage else whole] += 1
            case h.Arrange():
                found[f"{step.what} arranged"] += 1
            case h.Forge():
                found[f"a decision with a wrong {step.wrong}"] += 1
            case _:
                pass
    if found["requests at once"] and history.setting.write_buffer_bytes:
        found[CROWDED] += 1
    found.update({f"a flipped bit of a {what} message": count for what, count in flipped.items()})
    found[AFTER_THE_POWER] += _late_decisions(lines)
    return +found


def _late_decisions(lines: Iterable[Line]) -> int:
    """How many decisions came for halves that were stored before their broker lost its power."""
    lost_ns: dict[str, int] = {}
    stored: dict[tuple[str, int], tuple[str, int]] = {}
    late = 0
    for line in lines:
        key = (line.actor, line.operation)
        if line.action == "PowerLoss":
            lost_ns[line.node] = line.at_ns
        elif line.action == "SendHalf" and line.outcome == Outcome.OK:
            stored[key] = (line.queue[1], line.at_ns)
        elif line.action == "EndTransaction" and line.outcome == Outcome.INVOKE and key in stored:
            broker, at_ns = stored[key]
            late += lost_ns.get(broker, 0) > at_ns
    return late
