"""Single events proved well formed: numbered without a gap, in the order of their times, with nothing where nothing
belongs. The same rules as WellFormed has for a line alone, in columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from refmq.model.vocabulary import fields_of
from refmq.trace.record import Outcome
from refmq.verify.oracles.records import NEVER_KNOWN, NO_QUEUE, NOT_KNOWN_YET
from refmq.verify.spark.columns import ACTION_CODE, ACTIONS, Chunk, Mask, codes

LETTERS: Final = "abcd"
ANYTHING: Final = np.iinfo(np.int64).min
"""No value is expected."""


def _unnamed() -> NDArray[np.bool_]:
    """By action, outcome and letter: whether there is nothing to say there."""
    table = np.ones((len(ACTIONS), len(Outcome), 4), np.bool_)
    for code, action in enumerate(ACTIONS):
        for outcome in Outcome:
            names = fields_of(action, outcome.name.lower()) if code else ()
            for position, name in enumerate(names):
                table[code, outcome, position] = not name
    return table


def _not_known_yet() -> NDArray[np.int64]:
    """By action, outcome and letter: what it holds as long as nobody knows the answer."""
    table = np.full((len(ACTIONS), len(Outcome), 4), ANYTHING, np.int64)
    for action, values in NOT_KNOWN_YET.items():
        outcomes = [Outcome.INVOKE, *((Outcome.FAIL, Outcome.UNKNOWN) if action in NEVER_KNOWN else ())]
        for letter, value in values.items():
            for outcome in outcomes:
                table[ACTION_CODE[action], outcome, LETTERS.index(letter)] = value
    return table


UNNAMED: Final = _unnamed()
EXPECTED: Final = _not_known_yet()
HAS_EXPECTED: Final = EXPECTED != ANYTHING
NO_QUEUE_CODES: Final = codes(sorted(NO_QUEUE & set(ACTIONS)))


@dataclass(slots=True)
class RecordScreen:
    """Screens one stream chunk by chunk."""

    reason: str = ""
    """Why not all of it is well formed, as far as was seen."""
    _next: int = 0
    _last_ns: int = 0

    def feed(self, chunk: Chunk) -> None:
        if not self.reason:
            self.reason = self._wrong(chunk)

    def _wrong(self, chunk: Chunk) -> str:
        if chunk.is_world.any():
            return "the world left notes in it"
        sequence = chunk.column("sequence").astype(np.int64)
        if sequence[0] != self._next & 0xFFFF_FFFF or ((np.diff(sequence) & 0xFFFF_FFFF) != 1).any():
            return "its events are not numbered one by one"
        self._next += len(chunk)
        at_ns = chunk.column("at_ns")
        if at_ns[0] < self._last_ns or (np.diff(at_ns) < 0).any():
            return "its clock went back"
        self._last_ns = int(at_ns[-1])
        return "an event holds what it should not" if mistaken(chunk).any() else ""


def mistaken(chunk: Chunk) -> Mask:
    """Which events hold something that they should not."""
    action, outcome, rows = chunk.action, chunk.outcome, chunk.rows
    wrong = np.zeros(len(chunk), np.bool_)
    for position, letter in enumerate(LETTERS):
        column = rows[letter]
        wrong |= UNNAMED[action, outcome, position] & (column != 0)
        wrong |= HAS_EXPECTED[action, outcome, position] & (column != EXPECTED[action, outcome, position])
    wrong |= chunk.of(("CommitOffset", "QueryOffset"), Outcome.OK) & (rows["d"] != 0)
    wrong |= chunk.of(("LockQueue", "ViewRefresh"), Outcome.OK) & (rows["a"] != 0) & (rows["a"] != 1)
    wrong |= chunk.of(("LockQueue", "UnlockQueue"), Outcome.OK) & (rows["b"] != rows["at_ns"] // 1_000_000)
    transactions = chunk.names.numbers_with(("RMQ_SYS_TRANS_",))
    wrong |= np.isin(rows["subject"], transactions) & (rows["queue_id"] != 0)
    has_queue = rows["queue_id"] != -1
    return np.asarray(wrong | (has_queue & ((rows["subject"] == 0) | np.isin(action, NO_QUEUE_CODES))), np.bool_)
