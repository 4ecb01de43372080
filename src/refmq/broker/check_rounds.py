"""The check rounds: a broker asks producers about half messages that are still undecided.

A round walks through the half messages from where the last one ended. It passes those that have an op message or are
known to be finished (`half_removed`), sets aside those it has asked about too often (`half_discard`), appends the
others again and asks about the copy (`half_renew_and_check`), and ends at the first that is too young or newer than
the round itself. The steps are those of spec/transaction_check_back, one method each; `run` is the loop that takes
whichever is enabled. What is repaired here:

    FinishedSet         a round passes what is finished, although its op message is not where it looks
    PersistBehindFlush  progress is handed to the offset file only when the log that justifies it is durable
    CountRealChecks     a copy that is made because of immunity is not counted as a check

Besides, ages are measured by the broker's clock (upstream trusts the producer's), a copy keeps the user's flag, and a
store that does not take a copy ends the round instead of being asked again without a pause. A half message of which no
store could take a copy, because its properties have no room for one more, or whose properties name no place for it, is
set aside, and one that is damaged is passed, with a word to the operator: the halves behind them have their turn.
"""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Final

from refmq.broker.environment import Environment
from refmq.broker.message_copy import copy_of
from refmq.broker.sound_record import sound_record
from refmq.broker.transactions import OP_TAG, HalfMessage, Transactions
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.model.step import Event
from refmq.plane.engine import HotPath
from refmq.protocol import names
from refmq.protocol.names import TRANS_CHECK_MAX_TIME_TOPIC, TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC
from refmq.protocol.record import Record, decode_properties, encode_properties
from refmq.store.values import MessageToStore, PutResult

NOWHERE: Final = PhysicalOffset(-1)

OPS_AT_ONCE: Final = 32
"""Op messages read by one pull: TransactionalMessageServiceImpl, 4.9.8."""

ROUND_MS_MAX: Final = 60_000
"""A round that takes longer than this stops where it is."""

STEPS_AT_ONCE: Final = 16
"""So many steps a round takes before everything else in the broker has its turn."""

OLD_MAX: Final = 10_000
"""How many messages we remember as no longer immune; only the trace needs this."""

CHECK_TIMES_MAX: Final = 10_000
"""Check counts are capped here, so that a damaged property cannot become a huge number."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the next round starts, and the end of the log that justified it."""

    half: QueueOffset
    op: QueueOffset
    justified_at: PhysicalOffset


@dataclass(frozen=True, slots=True)
class Round:
    """A running round."""

    half: QueueOffset
    """The half message the round has reached."""
    started_at: PhysicalOffset
    """The end of the log when the round started; anything after it is left to the next round."""
    started_ms: TimestampMs
    first_half: QueueOffset
    first_op: QueueOffset
    next_op: QueueOffset
    remove: dict[QueueOffset, QueueOffset] = field(default_factory=dict)
    """Half messages whose op message has been read: half offset -> op offset."""
    done: frozenset[QueueOffset] = frozenset()
    """Op messages that are no longer needed."""
    pulled: bool = False
    empty: bool = False
    """The last pull found no op message."""
    last_op_at: PhysicalOffset = NOWHERE


@dataclass(frozen=True, slots=True)
class CheckLimits:
    """What the configuration says about checks."""

    check_max: int
    timeout_ms: int
    """How old a half message must be before we ask about it, unless the message sets its own age."""


class CheckRounds:
    """The rounds of one broker."""

    def __init__(
        self,
        engine: HotPath,
        environment: Environment,
        transactions: Transactions,
        progress: Progress,
        ask: Callable[[HalfMessage], None],
        ensure_topic: Callable[[str, int], Awaitable[bool]],
    ) -> None:
        """`ask` sends a check-back; `ensure_topic` creates the topic for messages set aside, with that many queues."""
        self._engine = engine
        self._environment = environment
        self._transactions = transactions
        self._ask = ask
        self._ensure_topic = ensure_topic
        self.progress = progress
        self.saved = (progress.half, progress.op)
        self.round: Round | None = None
        self._old: dict[int, None] = {}

    async def run(self, limits: CheckLimits) -> None:
        """Runs one whole round. An exception ends it early, and its progress is not stored."""
        for half_offset in sorted(self._transactions.pending_ops):
            await self._transactions.write_op(half_offset)
        self.round_start()
        try:
            for steps in itertools.count(1):
                if self.round is None:
                    break
                await self._step(limits)
                if steps % STEPS_AT_ONCE == 0:  # a step may end without waiting, and a round may have a million
                    await self._environment.give_way()
        finally:
            if self.round is not None:
                self.round_abort()

    async def _step(self, limits: CheckLimits) -> None:
        """Takes the step that is enabled."""
        round_ = self._running
        if not round_.pulled:
            self.pull_ops()
            return
        half = self._half(round_.half)
        if half is None and self._is_hole(round_.half):
            self._skip_hole()
        elif half is None:
            self.round_finish()
        elif self._environment.now_ms() - round_.started_ms > ROUND_MS_MAX:
            self._give_up()
        elif self._is_passed(half):
            self.half_removed()
        elif half.place is None:
            self._environment.warn(f"half message {round_.half} is set aside: it names no topic and queue to go to")
            await self.half_discard(half)
        elif check_times(half.properties) >= limits.check_max:
            await self.half_discard(half)
        elif half.record.physical_offset >= round_.started_at:
            self.round_finish()
        elif self._is_young(half, limits):
            if names.CHECK_IMMUNITY_TIME_IN_SECONDS in half.properties:
                await self.half_immune(half)
            else:
                self.round_finish()
        else:
            self._immunity_over(half)
            if round_.empty or round_.last_op_at >= round_.started_at:
                await self.half_renew_and_check(half)
            else:
                self.pull_ops()

    @property
    def _running(self) -> Round:
        assert self.round is not None, "a step of a round is taken in a round"
        return self.round

    # --- what a round looks at ---------------------------------------------------------------------------------------

    def _half(self, offset: QueueOffset) -> HalfMessage | None:
        record = self._record(TRANS_HALF_TOPIC, offset)
        return None if record is None else HalfMessage(record)

    def _record(self, topic: str, offset: QueueOffset) -> Record | None:
        units = self._engine.store.units(topic, 0, offset, 1)
        return self._sound(units[0].physical_offset, "a half message") if units else None

    def _sound(self, position: PhysicalOffset, what: str) -> Record | None:
        return sound_record(self._engine.store, self._environment, position, what)

    def _is_hole(self, offset: QueueOffset) -> bool:
        """Whether a half message is missing although later ones exist: expired, or damaged."""
        return offset < self._engine.store.max_offset(TRANS_HALF_TOPIC, 0)

    def _skip_hole(self) -> None:
        round_ = self._running
        first = self._engine.store.min_offset(TRANS_HALF_TOPIC, 0)
        self.round = replace(round_, half=max(first, QueueOffset(round_.half + 1)))

    def _is_passed(self, half: HalfMessage) -> bool:
        return half.record.queue_offset in self._running.remove or self._transactions.is_finished(half)

    def _is_young(self, half: HalfMessage, limits: CheckLimits) -> bool:
        """Whether it is too early to ask. The age of a message with immunity counts from when it was first stored, and
        a copy of one that was asked about is as old as that."""
        if check_times(half.properties) > 0:
            return False
        seconds = half.properties.get(names.CHECK_IMMUNITY_TIME_IN_SECONDS, "")
        wait_ms = int(seconds) * 1000 if seconds.isascii() and seconds.isdigit() and len(seconds) < 9 else -1
        first_ms = half.record.store_timestamp_ms
        if wait_ms >= 0:
            original = self._original(half)
            first_ms = first_ms if original is None else original.store_timestamp_ms
        return self._environment.now_ms() - first_ms < (limits.timeout_ms if wait_ms < 0 else wait_ms)

    def _immunity_over(self, half: HalfMessage) -> None:
        """Records, once, that a message is now old enough: the clock's step, noticed here."""
        if half.fingerprint not in self._old:
            self._old[half.fingerprint] = None
            if len(self._old) > OLD_MAX:
                self._old.pop(next(iter(self._old)))
            self._emit("ImmunityOver", half.fingerprint, 0)

    def _original(self, half: HalfMessage) -> Record | None:
        text = half.properties.get(names.TRANSACTION_PREPARED_QUEUE_OFFSET, "")
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            return None
        return self._record(TRANS_HALF_TOPIC, QueueOffset(int(text)))

    def _in_range(self, topic: str, offset: QueueOffset) -> QueueOffset:
        """Clamps progress to its queue: messages below are gone, and messages beyond were lost with the log's tail."""
        store = self._engine.store
        return min(max(offset, store.min_offset(topic, 0)), store.max_offset(topic, 0))

    # --- RoundStart --------------------------------------------------------------------------------------------------

    def round_start(self) -> None:
        assert self.round is None, "one round at a time"
        store = self._engine.store
        half = self._in_range(TRANS_HALF_TOPIC, self.progress.half)
        op = self._in_range(TRANS_OP_HALF_TOPIC, self.progress.op)
        self.round = Round(half, store.log_max, self._environment.now_ms(), half, op, op)
        self._emit("RoundStart", half, op)

    # --- PullOps -----------------------------------------------------------------------------------------------------

    def pull_ops(self) -> None:
        """Reads the next op messages. Those for half messages before this round are done."""
        before = self._running
        units = self._engine.store.units(TRANS_OP_HALF_TOPIC, 0, before.next_op, OPS_AT_ONCE)
        remove, done, last_at = dict(before.remove), set(before.done), before.last_op_at
        for unit in units:
            last_at = unit.physical_offset
            halves = self._halves_of(unit.physical_offset)
            if not halves:
                done.add(unit.queue_offset)  # it marks nothing, and would hold up those behind it for ever
            for half_offset in halves:
                if half_offset < before.first_half:
                    done.add(unit.queue_offset)
                else:
                    replaced = remove.get(half_offset)
                    if replaced is not None:
                        done.add(replaced)
                    remove[half_offset] = unit.queue_offset
        end = QueueOffset(units[-1].queue_offset + 1) if units else before.next_op
        assert end >= before.next_op, "op messages are read forward"
        self.round = replace(
            before,
            next_op=end,
            remove=remove,
            done=frozenset(done),
            pulled=True,
            empty=not units,
            last_op_at=last_at,
        )
        self._emit("PullOps", before.next_op, end)

    def _halves_of(self, physical_offset: PhysicalOffset) -> list[QueueOffset]:
        """The half offsets an op message names: one, or several separated by commas (5.x). Anything else names none."""
        record = self._sound(physical_offset, "an op message")
        if record is None or decode_properties(record.properties).get(names.TAGS) != OP_TAG:
            return []
        parts = record.body.decode("utf-8", "replace").split(",")
        return [QueueOffset(int(p)) for p in parts if p.isascii() and p.isdigit() and len(p) < 19]

    # --- HalfRemoved -------------------------------------------------------------------------------------------------

    def half_removed(self) -> None:
        before = self._running
        op = before.remove.get(before.half)
        self.round = replace(
            before,
            half=QueueOffset(before.half + 1),
            remove={half: op_ for half, op_ in before.remove.items() if half != before.half},
            done=before.done if op is None else before.done | {op},
        )
        self._emit("HalfRemoved", before.half, -1 if op is None else op)

    # --- HalfDiscard -------------------------------------------------------------------------------------------------

    async def half_discard(self, half: HalfMessage) -> None:
        """Moves a half message to a topic of its own, where an administrator can find it."""
        if not await self._ensure_topic(TRANS_CHECK_MAX_TIME_TOPIC, 1):
            self._give_up()
            return
        result = await self._engine.put(
            _copy(half, half.properties)._replace(topic=TRANS_CHECK_MAX_TIME_TOPIC), wait_durable=False
        )
        if result.status.is_for_good:
            self._environment.warn(f"half message {half.record.queue_offset} is passed: {result.status.name}")
            self._next()
            return
        if not result.status.is_stored:
            self._give_up()
            return
        self._next()
        self._emit("HalfDiscard", half.record.queue_offset, check_times(half.properties), half.fingerprint)

    # --- HalfImmune --------------------------------------------------------------------------------------------------

    async def half_immune(self, half: HalfMessage) -> None:
        """Appends a copy that waits for the next round; it remembers the first half message."""
        offset = half.record.queue_offset
        properties = dict(half.properties)
        properties.setdefault(names.TRANSACTION_PREPARED_QUEUE_OFFSET, str(offset))
        properties[names.WAIT_STORE_MSG_OK] = "false"
        result = await self._append(half, properties)
        if result is not None:
            self._emit("HalfImmune", offset, result.queue_offset, half.fingerprint)

    # --- HalfRenewAndCheck -------------------------------------------------------------------------------------------

    async def half_renew_and_check(self, half: HalfMessage) -> None:
        """Appends a copy and asks the producer about it."""
        times = check_times(half.properties) + 1
        properties = {**half.properties, names.TRANSACTION_CHECK_TIMES: str(times)}
        result = await self._append(half, properties)
        if result is None:
            return
        copy = half.record._replace(
            queue_offset=result.queue_offset,
            physical_offset=result.physical_offset,
            properties=encode_properties(properties),
        )
        self._ask(HalfMessage(copy))
        self._emit("HalfRenewAndCheck", half.record.queue_offset, result.queue_offset, half.fingerprint, times)

    async def _append(self, half: HalfMessage, properties: dict[str, str]) -> PutResult | None:
        result = await self._engine.put(_copy(half, properties), wait_durable=False)
        if result.status.is_for_good:
            self._environment.warn(f"half message {half.record.queue_offset} is set aside: {result.status.name}")
            await self.half_discard(half)
            return None
        if not result.status.is_stored:
            self._give_up()
            return None
        self._next()
        return result

    def _give_up(self) -> None:
        """The store is refusing writes: keep whatever progress was made."""
        if self._running.half > self._running.first_half:
            self.round_finish()
        else:
            self.round_abort()

    def _next(self) -> None:
        before = self._running
        self.round = replace(before, half=QueueOffset(before.half + 1))

    # --- RoundFinish, RoundAbort -------------------------------------------------------------------------------------

    def round_finish(self) -> None:
        """Stores the progress. Op progress advances only over an unbroken run of finished op messages."""
        before = self._running
        op = before.first_op
        while op in before.done:
            op = QueueOffset(op + 1)
        assert before.half >= before.first_half and op >= before.first_op, "progress only grows within a round"
        self.progress = Progress(before.half, op, self._engine.store.log_max)
        self.round = None
        self._emit("RoundFinish", before.half, op)

    def round_abort(self) -> None:
        self.round = None
        self._emit("RoundAbort", self.progress.half, self.progress.op)

    # --- PersistProgress ---------------------------------------------------------------------------------------------

    def persist_progress_enabled(self) -> bool:
        return (
            self.saved != (self.progress.half, self.progress.op)
            and self._engine.store.flushed_to >= self.progress.justified_at
        )

    def persist_progress(self) -> tuple[QueueOffset, QueueOffset] | None:
        """The progress that may be written down now, or None when nothing new may."""
        if not self.persist_progress_enabled():
            return None
        self.saved = (self.progress.half, self.progress.op)
        self._emit("PersistProgress", *self.saved)
        return self.saved

    def _emit(self, action: str, a: int, b: int, c: int = 0, d: int = 0) -> None:
        self._environment.emit(Event(action, "", TRANS_HALF_TOPIC, 0, a=a, b=b, c=c, d=d))


def check_times(properties: dict[str, str]) -> int:
    """How often a half message has been checked, according to its own property."""
    text = properties.get(names.TRANSACTION_CHECK_TIMES, "0")
    return min(int(text), CHECK_TIMES_MAX) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _copy(half: HalfMessage, properties: dict[str, str]) -> MessageToStore:
    return copy_of(half.record)._replace(properties=encode_properties(properties))
