"""A client's stream proved regular without its oracles: requests and their outcomes, pulls, commits.

A client asks one thing after another and gets an answer to each. Its pulls bring every message of the stretch that they
pass, one begins where the last one ended, and it commits what it has consumed. All of this can be seen in the stream
alone. Requests of other kinds are few; the oracles look at those themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from refmq.trace.record import Outcome
from refmq.verify.oracles.base import FOUND
from refmq.verify.oracles.calm import PULL_NOT_FOUND, WAKE_NS_MAX
from refmq.verify.spark.broker_screen import pair_key
from refmq.verify.spark.checks import Part
from refmq.verify.spark.columns import ACTION_CODE, Chunk, Mask
from refmq.verify.spark.suspects import EVERYTHING, Suspects, part_keys

BULK: Final = ("Send", "Pull", "CommitOffset")
"""The requests that are screened."""
REPEATED: Final = {"Send": "c", "Pull": "a", "CommitOffset": "ab"}
POLL_PROMISES: Final = ("AckedSurvives", "SkippedPoll")
MESSAGES_MAX: Final = 32
BYTES_MAX: Final = 256 << 10
"""What a broker gives to one pull. A pull that brings more is left to the oracles."""
OPEN_MAX: Final = 1 << 16
"""Requests under way. A client with more of them is left to the oracles."""


@dataclass(slots=True)
class Progress:
    """What a client has consumed of one queue."""

    first: int
    """Where its first pull began."""
    first_ns: int
    consumed_to: int


@dataclass(slots=True)
class ClientScreen:
    """Screens one stream chunk by chunk."""

    suspects: Suspects
    stream_key: int
    settled: bool = False
    progress: dict[tuple[int, int], Progress] = field(default_factory=dict)
    """By group and queue."""
    ends: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By queue: when the last pull was answered, and where the queue ended."""
    acked: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By queue: the last offset that was acknowledged, and when."""
    _waiting: Chunk | None = None
    """Rows of requests without an outcome yet."""
    _last_operation: dict[int, int] = field(default_factory=dict)

    def feed(self, chunk: Chunk) -> None:
        rows = chunk.only(chunk.of(BULK) & (chunk.outcome != Outcome.STEP))
        if not len(rows):
            return
        self._progress(rows)
        self._ends(rows)
        if not self._numbers_rise(rows.only(rows.outcome == Outcome.INVOKE)):
            self.suspects.add("WellFormed", self.stream_key, "a request may have the number of another one")
        self._operations(rows)

    # --- requests and outcomes --------------------------------------------------------------------------------------

    def _operations(self, rows: Chunk) -> None:
        waiting = self._waiting
        if waiting is not None and rows.names.texts[: len(waiting.names.texts)] != waiting.names.texts:
            self._suspect_all(waiting, "a request goes over the end of a table of strings")
            waiting = None
        if waiting is not None and len(waiting):
            both = np.append(waiting.rows, rows.rows)
            rows = Chunk(rows.node, both, rows.names, np.append(waiting.order_ns, rows.order_ns))
        groups = _Operations(rows)
        open_rows = ~groups.is_over[groups.of_given]
        left = rows.only(open_rows)
        if len(left) > OPEN_MAX:
            self._suspect_all(left, "many requests are under way")
            left = left.only(np.zeros(len(left), np.bool_))
        self._waiting = left
        over = rows.only(~open_rows)
        if len(over):
            self._judge(_Operations(over))

    def finish(self) -> None:
        left = self._waiting
        if left is not None and len(left) and self.settled:
            self._suspect_all(left, "a request has no outcome")

    def _suspect_all(self, rows: Chunk, reason: str) -> None:
        self.suspects.add("WellFormed", self.stream_key, reason)
        self.suspects.add_all(("AnsweredWhenCalm", "HeldPullWakes", "SidesAgree"), part_keys(rows, Part.NODE), reason)
        self.suspects.add_all(POLL_PROMISES, part_keys(rows, Part.QUEUE), reason)
        self.suspects.add_all(("NonmonotonicPoll",), part_keys(rows, Part.GROUP), reason)
        messages = part_keys(rows, Part.MESSAGE)
        self.suspects.add_all(("NoInvention",), messages[messages != EVERYTHING], reason)

    def _judge(self, groups: _Operations) -> None:
        rows, first, last = groups.rows, groups.first, groups.last
        self._pairs(groups)
        outcome, action = rows.outcome[last], rows.action[last]
        broker = part_keys(rows, Part.NODE)[last]
        status = rows.rows["d"][last]
        is_bad = (outcome != Outcome.OK) | ((action == ACTION_CODE["Send"]) & (status != 0))
        self.suspects.add_all(("AnsweredWhenCalm", "SidesAgree"), broker[is_bad], "a request did not end well")
        is_pull = action == ACTION_CODE["Pull"]
        took_ns = rows.rows["at_ns"][last] - rows.rows["at_ns"][first]
        slow = is_pull & ((took_ns > WAKE_NS_MAX) | (status == PULL_NOT_FOUND))
        self.suspects.add_all(("HeldPullWakes",), broker[slow], "a pull had to wait")
        self._polls(groups, is_pull)

    def _pairs(self, groups: _Operations) -> None:
        """An operation is an invoke, what it brought, and an outcome that repeats what was asked for."""
        rows, first, last = groups.rows, groups.first, groups.last
        middle = np.ones(len(rows), np.bool_)
        middle[first] = middle[last] = False
        wrong = (rows.outcome[first] != Outcome.INVOKE) | (last == first)
        wrong |= rows.queue[first] != rows.queue[last]
        np.logical_or.at(wrong, groups.of_sorted[middle & (rows.outcome != Outcome.CONSUMED)], True)
        for action, letters in REPEATED.items():
            chosen = rows.action[first] == ACTION_CODE[action]
            for letter in letters:
                column = rows.rows[letter]
                wrong |= chosen & (column[first] != column[last])
        if wrong.any():
            self._suspect_all(rows.only(wrong[groups.of_sorted]), "outcomes do not belong to requests")

    def _numbers_rise(self, begun: Chunk) -> bool:
        """Whether the requests of each actor have rising numbers, so that none is made twice."""
        if not len(begun):
            return True
        keys = pair_key(begun.actor, begun.action.astype(np.uint64))
        order = np.argsort(keys, kind="stable")
        keys, numbers = keys[order], begun.rows["operation"][order].astype(np.int64)
        same = keys[1:] == keys[:-1]
        rises = not (same & (np.diff(numbers) <= 0)).any()
        starts = np.flatnonzero(np.append(True, ~same))
        for start, stop in zip(starts.tolist(), np.append(starts[1:], len(keys)).tolist(), strict=True):
            key = int(keys[start])
            rises = rises and int(numbers[start]) > self._last_operation.get(key, -1)
            self._last_operation[key] = int(numbers[stop - 1])
        return rises

    def _polls(self, groups: _Operations, is_pull: Mask) -> None:
        rows, first, last = groups.rows, groups.first, groups.last
        count = last - first - 1
        begin, end, status = rows.rows["a"][last], rows.rows["b"][last], rows.rows["d"][last]
        is_ok = is_pull & (rows.outcome[last] == Outcome.OK)
        wrong = is_ok & np.where(status == FOUND, (count != end - begin) | (count == 0), (count != 0) | (begin != end))
        rank = np.arange(len(rows)) - first[groups.of_sorted] - 1
        consumed = rows.outcome == Outcome.CONSUMED
        expected = rows.rows["a"][first][groups.of_sorted] + rank
        off = consumed & ((rows.rows["b"] != expected) | (rows.queue != rows.queue[last][groups.of_sorted]))
        np.logical_or.at(wrong, groups.of_sorted[off], True)
        self._limits(groups, is_pull)
        odd_status = is_ok & ~np.isin(status, (FOUND, PULL_NOT_FOUND))
        wrong |= odd_status | (~is_ok & is_pull)
        if wrong.any():
            # The messages of a pull may be of another queue than the pull itself, if something is wrong with it.
            members = rows.only(wrong[groups.of_sorted])
            reason = "a pull is not plain"
            self.suspects.add_all(POLL_PROMISES, part_keys(members, Part.QUEUE), reason)
            self.suspects.add_all(("NonmonotonicPoll",), part_keys(members, Part.GROUP), reason)
            self.suspects.add_all(("SidesAgree",), part_keys(members, Part.NODE), reason)

    def _limits(self, groups: _Operations, is_pull: Mask) -> None:
        """How much a pull brings, and how much it asked for."""
        rows, first, last = groups.rows, groups.first, groups.last
        asked = rows.rows["b"][first]
        count_max = np.where(asked > 0, np.minimum(asked, MESSAGES_MAX), MESSAGES_MAX)
        sizes = np.where(rows.outcome == Outcome.CONSUMED, rows.rows["d"], 0).astype(np.int64)
        is_much = (last - first - 1 > count_max) | (np.add.reduceat(sizes, first) > BYTES_MAX)
        much = rows.only((is_pull & is_much)[groups.of_sorted])
        self.suspects.add_all(("PullWithinLimits",), part_keys(much, Part.GROUP), "a pull brings much")

    # --- what is consumed and committed ---------------------------------------------------------------------------

    def _progress(self, rows: Chunk) -> None:
        """Commits against what was consumed without a hole since the first pull."""
        is_begin = rows.of(("Pull",), Outcome.INVOKE)
        is_consumed = rows.outcome == Outcome.CONSUMED
        is_commit = rows.of(("CommitOffset",), Outcome.INVOKE)
        told = rows.only(is_begin | is_consumed | is_commit)
        if not len(told):
            return
        order = np.argsort(pair_key(told.group, told.queue), kind="stable")
        keys = pair_key(told.group, told.queue)[order]
        bounds = np.append(np.flatnonzero(np.append(True, keys[1:] != keys[:-1])), len(keys))
        begin = told.of(("Pull",), Outcome.INVOKE)
        commit = told.of(("CommitOffset",), Outcome.INVOKE)
        for start, stop in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            self._of_one(told, order[start:stop], begin, commit)

    def _of_one(self, told: Chunk, at: NDArray[np.intp], begin: Mask, commit: Mask) -> None:
        """The events of one group in one queue, in their order."""
        group, queue = int(told.group[at[0]]), int(told.queue[at[0]])
        is_begin, is_commit = begin[at], commit[at]
        a, b = told.rows["a"][at], told.rows["b"][at]
        known = self.progress.get((group, queue))
        if known is None:
            first = int(np.argmax(is_begin)) if is_begin.any() else -1
            if first < 0:
                return  # the oracle knows no progress before a first pull either
            begins_at = int(a[first])
            known = self.progress[group, queue] = Progress(begins_at, int(told.rows["at_ns"][at[first]]), begins_at)
            is_begin, is_commit, a, b = is_begin[first:], is_commit[first:], a[first:], b[first:]
        is_consumed = ~is_begin & ~is_commit
        reached = np.maximum.accumulate(np.where(is_consumed, b + 1, known.consumed_to))
        reached = np.maximum(reached, known.consumed_to)
        before = np.append(known.consumed_to, reached[:-1])
        has_hole = (is_consumed & (b > before)).any()
        is_ahead = (is_commit & (b > before)).any()
        if has_hole or is_ahead:
            why = "a commit is ahead" if is_ahead else "consumption has a hole"
            self.suspects.add("CommittedOffsetNeverAhead", group | 1, why)
        known.consumed_to = int(reached[-1])

    def _ends(self, rows: Chunk) -> None:
        """Where queues ended, and up to where they were promised to have messages."""
        pulls = rows.only(rows.of(("Pull",), Outcome.OK))
        for queue in np.unique(pulls.queue).tolist():
            last = np.flatnonzero(pulls.queue == queue)[-1]
            self.ends[queue] = (int(pulls.order_ns[last]), int(pulls.rows["c"][last]))
        sent = rows.only(rows.of(("Send",), Outcome.OK) & (rows.rows["d"] == 0))
        order = np.argsort(sent.queue, kind="stable")
        queues, offsets = sent.queue[order], sent.rows["b"][order]
        starts = np.flatnonzero(np.append(True, queues[1:] != queues[:-1])) if len(queues) else np.empty(0, np.intp)
        if len(starts):
            for queue, most, now_ns in zip(
                queues[starts].tolist(),
                np.maximum.reduceat(offsets, starts).tolist(),
                np.minimum.reduceat(sent.rows["at_ns"][order], starts).tolist(),
                strict=True,
            ):
                known = self.acked.get(queue)
                self.acked[queue] = (most, now_ns) if known is None else (max(most, known[0]), known[1])


class _Operations:
    """Rows sorted by operation, and where each operation begins and ends."""

    def __init__(self, rows: Chunk) -> None:
        key = pair_key(pair_key(rows.actor, rows.column("operation")), rows.action.astype(np.uint64))
        order = np.argsort(key, kind="stable")
        self.rows = rows.only(order)
        sorted_key = key[order]
        fresh = np.append(True, sorted_key[1:] != sorted_key[:-1])
        self.first = np.flatnonzero(fresh)
        self.last = np.append(self.first[1:], len(order)) - 1
        group_of_sorted = np.cumsum(fresh) - 1
        is_final = np.isin(self.rows.outcome, (Outcome.OK, Outcome.FAIL, Outcome.UNKNOWN))
        self.is_over = np.logical_or.reduceat(is_final, self.first)
        self._sorted = group_of_sorted
        self._unsorted = np.empty(len(order), np.intp)
        self._unsorted[order] = group_of_sorted

    @property
    def of_given(self) -> NDArray[np.intp]:
        """The operation of each of the rows that were given, in their order."""
        return self._unsorted

    @property
    def of_sorted(self) -> NDArray[np.intp]:
        """The operation of each of `rows`."""
        return self._sorted
