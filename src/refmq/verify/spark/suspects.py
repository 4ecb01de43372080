"""Suspects: what a screen could not prove clean, by promise and by the key under which its oracle will look at it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from refmq.model.vocabulary import fields_of
from refmq.trace.record import Outcome
from refmq.verify.spark.checks import Part
from refmq.verify.spark.columns import ACTIONS, U64, Chunk, mix, text_hash

KEYS_MAX: Final = 100_000
"""Suspect keys of one promise in one stream. With more of them the oracle looks at everything."""
EVERYTHING: Final = 0
"""The key that stands for all keys."""


def part_keys(chunk: Chunk, part: Part) -> U64:
    """The key of each event: a hash, never `EVERYTHING`. What has no key has `EVERYTHING`."""
    match part:
        case Part.QUEUE:
            return chunk.queue | np.uint64(1)
        case Part.NODE:
            return chunk.broker | np.uint64(1)
        case Part.GROUP:
            return chunk.group | np.uint64(1)
        case Part.MESSAGE:
            return message_keys(chunk)
        case Part.STREAM:
            return np.full(len(chunk), stream_key(chunk.node), np.uint64)
        case Part.WHOLE:
            return np.ones(len(chunk), np.uint64)


def stream_key(node: str) -> int:
    return text_hash(node) | 1


def message_keys(chunk: Chunk) -> U64:
    """The key of the message that each event is about."""
    letters = MESSAGE_LETTER[chunk.action, chunk.outcome]
    keys = np.zeros(len(chunk), np.uint64)
    for number, letter in enumerate("abcd", 1):
        chosen = letters == number
        if chosen.any():
            values = chunk.rows[letter][chosen].astype(np.int64).astype(np.uint64)
            keys[chosen] = mix(values) | np.uint64(1)
    return keys


def message_key(message: int) -> int:
    return int(mix(np.array([message], np.int64).astype(np.uint64))[0]) | 1


def _message_letters() -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    table = np.zeros((len(ACTIONS), len(Outcome)), np.uint8)
    for code, action in enumerate(ACTIONS):
        for outcome in Outcome:
            names = fields_of(action, outcome.name.lower())
            if code and "message" in names:
                table[code, outcome] = names.index("message") + 1
    return table


MESSAGE_LETTER: Final = _message_letters()
"""By action and outcome: which of a to d is the message, from 1; 0 for none."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A key of a promise, and why it could not be proved clean."""

    invariant: str
    key: int
    reason: str


@dataclass(slots=True)
class Suspects:
    """Suspects of one stream."""

    found: dict[tuple[str, int], str] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)

    def add(self, invariant: str, key: int, reason: str) -> None:
        if (invariant, key) in self.found:
            return
        count = self._counts[invariant] = self._counts.get(invariant, 0) + 1
        if count > KEYS_MAX:
            key = EVERYTHING
        self.found.setdefault((invariant, key), reason)

    def add_all(self, invariants: tuple[str, ...], keys: U64, reason: str) -> None:
        for key in np.unique(keys).tolist():
            for invariant in invariants:
                self.add(invariant, key, reason)

    def all(self) -> list[Suspect]:
        return [Suspect(invariant, key, reason) for (invariant, key), reason in self.found.items()]
