"""A slave gets the log of a store in pieces, dies on the way and resumes; and it may have to become the master."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from conformance.engines import StoreEngine
from conformance.oracles import store_events as seen
from conformance.store import history as h
from conformance.store import messages
from conformance.store.drive import drive, put
from conformance.store.readout import ALL, read_everything
from conformance.store.record import BLANK_BYTES
from refmq.errors import DiskFailed, UsageError
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.sim.choice import harshest, scripted
from refmq.sim.disk import Fault, SimulatedCrash, SimulatedDisk
from refmq.store import LogPiece, MessageStore, PutStatus

OWN_MESSAGES: Final = ((0, 0), (1, 1), (0, 0))
"""Topic and queue of what a slave is sent when it is the master."""
FLUSH_EVERY: Final = 3
"""A slave makes what it has got durable after so many pieces."""


class Slave:
    """A slave and its own disk."""

    def __init__(self, engine: StoreEngine, setting: h.Setting, now_ms: int) -> None:
        self._engine = engine
        self._setting = replace(setting, transient_pool=False)
        self._now_ms = TimestampMs(now_ms)
        self._at_flush: Callable[[], None] | None = None
        self._disk = SimulatedDisk(
            clock=lambda: self._now_ms, page_bytes=setting.page_bytes, on_flush=self._during_flush
        )
        self.store = self._start()

    async def _during_flush(self) -> None:
        planned, self._at_flush = self._at_flush, None
        if planned is not None:
            planned()

    def _start(self) -> MessageStore:
        self.store = self._engine.open_store(self._disk, self._setting)
        drive(self.store.start(self._now_ms))
        self.store.set_slave(True)
        return self.store

    def follow(self, master: MessageStore, end: int, step: h.Replicate) -> None:
        """Gets the log up to `end`."""
        for how, at, survivors in step.deaths:
            self._disk.crash_at(self._disk.operations + at, scripted(survivors))
            try:
                self._copy(master, end, step)
                self._disk.kill()
            except SimulatedCrash:
                pass
            choose = scripted(survivors)
            self._disk = self._disk.after_process_crash() if how == "process" else self._disk.after_power_loss(choose)
            self._start()
        self._copy(master, end, step)

    def _copy(self, master: MessageStore, end: int, step: h.Replicate) -> None:
        pieces = 0
        while (at := max(self.store.received_to, master.log_min)) < end:
            piece = master.read_log(at, min(max(1, step.piece_bytes), end - at))
            assert piece is not None
            try:
                self.store.append_log(piece)
            except UsageError:  # it wants to be flushed first
                drive(self.store.flush())
                self.store.append_log(piece)
            pieces += 1
            if pieces % FLUSH_EVERY == 0:
                drive(self.store.flush())
            if pieces % max(1, step.dispatch_every) == 0:
                self.store.dispatch(ALL)

    def settle(self) -> None:
        """Everything becomes durable and gets its units."""
        drive(self.store.flush())
        while self.store.dispatch(ALL):
            pass

    def readout(self) -> seen.Readout:
        return read_everything(self.store, self._setting, is_full=True)

    def refusals(self) -> Iterator[str]:
        """What a slave must not do: a sentence for each that it does."""
        store, end, file_bytes = self.store, self.store.received_to, self._setting.log_file_bytes
        wrong = [(int(end) + 1, 1), (int(end) - 1, 1)]
        if end > store.log_min:
            wrong += [(int(end), file_bytes - end % file_bytes + 1), (int(end) + file_bytes, 1)]
        for at, length in wrong:
            try:
                store.append_log(LogPiece(PhysicalOffset(at), bytes(length)))
                yield f"{length} bytes for {at} were appended to a log that ends at {end}"
            except UsageError:
                pass
            if store.received_to != end:
                yield f"a piece that was refused has moved the end of the log from {end} to {store.received_to}"
        to_send = messages.one(h.AppendMessage(), 0, self._now_ms, 1 << 20)
        if put(store, to_send.message, self._now_ms).status is not PutStatus.SERVICE_NOT_AVAILABLE:
            yield "a slave has taken a message"
        for queue in store.queues():
            for offset in (store.max_offset(queue.topic, queue.queue_id) + 7, QueueOffset(-1)):
                result = store.get_message(queue.topic, queue.queue_id, QueueOffset(offset), 1)
                if result.next_offset != offset or result.records:
                    yield f"a slave corrects offset {offset} of {queue} to {result.next_offset}"

    def fail(self) -> Iterator[str]:
        """A flush fails, and with it the slave: it takes nothing more."""
        self._disk.inject(Fault.FLUSH_FAILS)
        piece = LogPiece(self.store.received_to, bytes(BLANK_BYTES))  # no record: it is written as it is
        try:
            self.store.append_log(piece)
            drive(self.store.flush())
            yield "a flush that failed has come to its end"
        except DiskFailed:
            pass
        try:
            self.store.append_log(LogPiece(self.store.received_to, bytes(1)))
            yield "a slave goes on after a flush has failed"
        except DiskFailed:
            pass

    def take(self, number: int, *, during_flush: bool) -> Iterator[seen.Sent]:
        """Becomes the master, and is sent messages with numbers from `number` on."""
        if during_flush:
            self._at_flush = lambda: self.store.set_slave(False)
            drive(self.store.flush())
        self._at_flush = None
        self.store.set_slave(False)
        for each, (topic, queue) in enumerate(OWN_MESSAGES, number):
            to_send = messages.one(h.AppendMessage(topic, queue), each, self._now_ms, 1 << 20)
            result = put(self.store, to_send.message, self._now_ms)
            if result.status.is_stored:
                yield to_send.sent[0]

    def restart(self) -> None:
        """The power goes and takes all that it may; the log was flushed, and the rest is made of it again."""
        self._disk = self._disk.after_power_loss(harshest)
        self.store = self._engine.open_store(self._disk, self._setting)
        drive(self.store.start(self._now_ms))


def replicate(
    step: h.Replicate,
    master: MessageStore,
    known: seen.Readout,
    engine: StoreEngine,
    setting: h.Setting,
    *,
    now_ms: int,
    number: int,
    with_queues: bool,
) -> Iterator[seen.Observation]:
    """Lets a slave live through a step. `known` is everything that the master has."""
    slave = Slave(engine, setting, max(0, now_ms - step.behind_ms))
    end = known.log_min + (known.log_max - known.log_min) * step.percent // 100
    if step.in_blank:
        end = max(_places_in_blanks(known, setting.log_file_bytes), default=end)
    slave.follow(master, end, step)
    for sentence in slave.refusals():
        yield seen.Failed("Replicate", sentence)
    if end >= known.log_max:
        slave.settle()
        yield seen.Replicated(known, slave.readout(), with_queues)
        for sentence in slave.fail() if known.records else ():
            yield seen.Failed("Replicate", sentence)
        return
    arrived_to = int(slave.store.log_max) if known.records else 0
    sent = tuple(slave.take(number, during_flush=step.during_flush))
    if len(sent) != len(OWN_MESSAGES):
        yield seen.Failed("Replicate", "a slave that became the master takes no messages")
    slave.settle()
    before = slave.readout()
    slave.restart()
    yield seen.Promoted(known, arrived_to, sent, before, slave.readout(), with_queues)


def _places_in_blanks(known: seen.Readout, file_bytes: int) -> Iterator[int]:
    """For each blank of a log that is longer than its head: the place before its last byte."""
    for record in known.records:
        end = record.physical_offset + record.size_bytes
        file_end = -(-end // file_bytes) * file_bytes
        if end + BLANK_BYTES < file_end <= known.log_max and all(r.physical_offset != end for r in known.records):
            yield file_end - 1
