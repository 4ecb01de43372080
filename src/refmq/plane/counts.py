"""What the hot path has counted since somebody last looked. Statistics are read from it, not told of each message."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TypeAlias

from refmq.plane.effects import CountPull, CountPut, CountRefusedSend, CountSend

Count: TypeAlias = CountSend | CountRefusedSend | CountPut


@dataclass(slots=True)
class Tally:
    """One counter: how often something happened, and how much it was in all."""

    calls: int = 0
    messages: int = 0
    size_bytes: int = 0
    took_ms: int = 0


@dataclass(slots=True)
class Counts:
    """Tallies of sends by topic and of pulls by queue and group, and how long each took."""

    sends: dict[str, Tally] = field(default_factory=dict)
    refused_sends: int = 0
    pulls: dict[tuple[str, int, str], Tally] = field(default_factory=dict)
    """By topic, queue id and group."""
    found: dict[tuple[str, int, str], Tally] = field(default_factory=dict)
    """Of these, the pulls that brought something."""
    put_times_ms: Counter[int] = field(default_factory=Counter)
    pull_times_ms: Counter[int] = field(default_factory=Counter)

    def add(self, count: Count) -> None:
        """Counts a put, or one that was refused."""
        match count:
            case CountSend():
                tally = self.sends.get(count.topic) or self.sends.setdefault(count.topic, Tally())
                _add(tally, count.messages, count.size_bytes, count.took_ms)
                self.put_times_ms[count.took_ms] += 1
            case CountPut():
                self.put_times_ms[count.took_ms] += 1
            case CountRefusedSend():
                self.refused_sends += 1

    def add_pull(self, pull: CountPull, took_ms: int) -> None:
        """Counts a pull. `took_ms` is how long its step took."""
        key = (pull.topic, pull.queue_id, pull.group)
        _add(self.pulls.setdefault(key, Tally()), pull.messages, pull.size_bytes, took_ms)
        self.pull_times_ms[took_ms] += 1
        if pull.messages:
            _add(self.found.setdefault(key, Tally()), pull.messages, pull.size_bytes, took_ms)


def _add(tally: Tally, messages: int, size_bytes: int, took_ms: int) -> None:
    assert took_ms >= 0, "the uptime never goes back"
    tally.calls += 1
    tally.messages += messages
    tally.size_bytes += size_bytes
    tally.took_ms += took_ms
