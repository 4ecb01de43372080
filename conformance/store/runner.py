"""Takes the steps of a history one by one, on the simulated disk, and writes down what can be observed.

The store runs without an event loop: the simulated disk never makes a flush wait, so a coroutine of the store runs
to its end when it is driven once.
"""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from conformance.base import Violation
from conformance.engines import StoreEngine, store_engine
from conformance.oracles import store_events as seen
from conformance.oracles.store import judge
from conformance.store import history as h
from conformance.store import messages, raw
from conformance.store.readout import ALL, decoded, read_everything
from conformance.store.record import Record, java_hash
from refmq.errors import DamagedLog, DiskError, DiskFailed
from refmq.model.ids import PhysicalOffset, QueueOffset, TimestampMs
from refmq.sim.choice import harshest, mildest, scripted
from refmq.sim.disk import Fault, SimulatedCrash, SimulatedDisk
from refmq.store import MessageFilter, MessageStore, MessageToStore, PutResult, PutStatus

T = TypeVar("T")

BEGIN_MS: Final = 1_700_000_000_000
RESERVED_MS: Final = 72 * 3600 * 1000
FILES_MAX: Final = 10
LOG_THOROUGH_MS: Final = 10_000
QUEUE_THOROUGH_MS: Final = 60_000
"""After so long everything is flushed, whatever the number of its pages."""
PIECE_BYTES: Final = 333
"""What a slave is sent at once: records arrive in halves."""
DELETE_HOUR: Final = 4
CAPACITY_BYTES: Final = 1 << 40
ABORT: Final = "abort"
CHECKPOINT: Final = "checkpoint"


def drive(coroutine: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise AssertionError("the store waited for something that is not its disk")


@dataclass
class Runner:
    """One history under way."""

    setting: h.Setting
    engine: StoreEngine
    observations: list[seen.Observation] = field(default_factory=list)
    now_ms: int = BEGIN_MS
    numbers: int = 0
    store: MessageStore | None = None
    """None while the store is not running."""
    is_broken: bool = False
    """The store could not be started; nothing more can be learned."""

    def __post_init__(self) -> None:
        self.disk = SimulatedDisk(
            clock=lambda: TimestampMs(self.now_ms),
            page_bytes=self.setting.page_bytes,
            capacity_bytes=CAPACITY_BYTES,
            on_flush=self._during_flush,
        )
        self._deleted_to: dict[str, int] = {}
        self._meanwhile: h.Meanwhile | None = None
        self._flushes_left = 0
        self._waiting: list[tuple[PutResult, tuple[int, ...]]] = []
        self._armed: h.ProcessCrash | h.PowerLoss | None = None
        self._flushed_to = 0
        self._checkpoint_bytes = b""
        self._is_lied_to = False  # a checkpoint that is not the store's own says more than is true
        self._may_refuse = False
        self._clock_was_set_back = False
        self._disk_was_full = False
        self._start(h.StartStore())

    # --- the steps --------------------------------------------------------------------------------------------

    def take(self, step: h.Step) -> None:
        """Takes one step, whatever comes of it."""
        if self.is_broken:
            return
        try:
            self._take(step)
            self._note_progress()
        except SimulatedCrash:
            assert self._armed is not None
            self._crash(self._armed)
        except DiskError as error:
            if isinstance(error, DiskFailed) and isinstance(step, h.FlushLog | h.Maintain):
                assert self.store is not None
                if self.store.accepts_puts:
                    self._see(seen.Failed(type(step).__name__, "a flush failed, and puts are accepted all the same"))
            # A full or failing disk may stop an awaited operation; nothing that was promised may depend on it.
            if not isinstance(step, h.FlushLog | h.Maintain | h.StopStore | h.ExpireFile | h.DispatchMessage):
                self._failed(step, error)
            elif isinstance(step, h.StopStore):
                self._crash(h.ProcessCrash())
        except Exception as error:  # an engine may be wrong in any way; every way is a finding
            self._failed(step, error)

    def finish(self) -> list[Violation]:
        """Ends the history: whatever was running is read, stopped, started and read again; then the oracles judge."""
        self.disk.cancel_faults()
        self._armed = None
        self.take(h.ReadEverything())
        self.take(h.StopStore())
        self.take(h.StartStore())
        if self.store is not None:
            try:
                self._replicate(self.store)
            except Exception as error:  # as in `take`
                self._see(seen.Failed("replicate", f"{type(error).__name__}: {error}"))
        return judge(self.observations)

    def _take(self, step: h.Step) -> None:
        store = self.store
        match step:
            case h.AdvanceClock(by_ms):
                self._clock_was_set_back |= by_ms < 0
                self.now_ms = max(BEGIN_MS, self.now_ms + by_ms)
            case h.StartStore() if store is None:
                self._start(step)
            case h.DamageAbort() | h.DamageCheckpoint() | h.StrayFile() | h.LoseDerived() if store is None:
                self._damage(step)
            case h.ProcessCrash() | h.PowerLoss() if store is not None or step.effects == 0:
                if step.effects == 0:
                    self._crash(step)
                else:
                    self._armed = step
                    self.disk.cancel_faults()
                    self.disk.crash_at(self.disk.operations + step.effects - 1, scripted([step.torn]))
            case _ if store is not None:
                self._take_running(step, store)
            case _:
                pass  # makes no sense here

    def _take_running(self, step: h.Step, store: MessageStore) -> None:
        match step:
            case h.AppendMessage():
                room = self.setting.log_file_bytes - store.log_max % self.setting.log_file_bytes
                self._put(store, messages.one(step, self.numbers, self.now_ms, room), early=step.early)
            case h.AppendBatch():
                self._put(store, messages.batch(step, self.numbers, self.now_ms), early=False)
            case h.FlushLog():
                self._flush(store)
            case h.DispatchMessage(count):
                self._dispatch(store, count)
            case h.Maintain(after_ms):
                self.now_ms += after_ms
                self._maintain(store, after_ms)
            case h.ExpireFile():
                self._clean(step, store)
            case h.ServeMessage():
                self._serve(step, store)
            case h.ReadEverything():
                self._see(self._readout(store, is_full=False))
            case h.DeleteTopic(topic):
                name = messages.TOPICS[topic % len(messages.TOPICS)]
                end = int(store.log_max)
                self._deleted_to[name] = end
                store.delete_topic(name)
                self._see(seen.DeleteTopic(name, end))
            case h.StopStore():
                self._meanwhile = None  # nothing is sent to a store that is being stopped
                drive(store.stop(TimestampMs(self.now_ms)))
                self.store = None
                self._waiting.clear()
                self._see(seen.StopStore())
                self._note_checkpoint()
                self.disk = self.disk.after_process_crash()  # a new process, with nothing lost
            case h.Meanwhile(flushes):
                self._meanwhile, self._flushes_left = step, flushes
            case h.FailFlush():
                self.disk.inject(Fault.FLUSH_FAILS)
            case h.FillDisk(effects):
                self._disk_was_full = True
                self.disk.inject(Fault.DISK_FULL, self.disk.operations + effects)
            case _:
                pass

    def _maintain(self, store: MessageStore, after_ms: int) -> None:
        written, dispatched = store.log_max, store.dispatched_to
        drive(store.maintain(TimestampMs(self.now_ms)))
        was_set_back, self._clock_was_set_back = self._clock_was_set_back, False
        if not store.accepts_puts or was_set_back:
            return  # the disk is full, or a flush has failed; or nobody knows how much time has passed
        if after_ms >= LOG_THOROUGH_MS and store.flushed_to < written:
            self._see(seen.Failed("maintain", f"after {after_ms} ms only {store.flushed_to} is flushed"))
        if after_ms >= QUEUE_THOROUGH_MS and not self._is_lied_to:
            lost = raw.checkpoint(self.disk, self.setting, self._deleted_to).missing_in_queues
            behind = [offset for _, offset in lost if offset < dispatched]
            if behind:
                self._see(seen.Failed("maintain", f"after {after_ms} ms the units of {behind} are not durable"))

    def _dispatch(self, store: MessageStore, count: int) -> None:
        """Whoever waits for messages is told of each one, in order."""
        at = begin = store.dispatched_to
        told = [int(each.physical_offset) for each in store.dispatch(count)]
        expected = []
        while at < store.dispatched_to:
            data = store.message_at(at)
            record = decoded(data) if data is not None else None
            if isinstance(record, Record):
                if record.has_queue_unit:
                    expected.append(record.physical_offset)
                at = PhysicalOffset(at + record.size_bytes)
            else:
                at = PhysicalOffset((at // self.setting.log_file_bytes + 1) * self.setting.log_file_bytes)
        bound = store.flushed_to if self.setting.sync_flush else store.log_max
        if begin == store.dispatched_to < bound and not self._disk_was_full:
            self._see(seen.Failed("dispatch", f"nothing from {begin} on, and the log can be dispatched to {bound}"))
        if told != expected:
            self._see(seen.Failed("dispatch", f"from {begin} on {told} were dispatched instead of {expected}"))

    def _replicate(self, store: MessageStore) -> None:
        """A slave gets the log in pieces and makes its own queues and index of it."""
        master = self._readout(store, is_full=True)
        if master.log_fault or master.dispatched_to < master.log_max:
            return
        disk = SimulatedDisk(clock=lambda: TimestampMs(self.now_ms), page_bytes=self.setting.page_bytes)
        slave = self.engine.open_store(disk, replace(self.setting, transient_pool=False))
        drive(slave.start(TimestampMs(self.now_ms)))
        slave.set_slave(True)
        at = store.log_min
        while (piece := store.read_log(at, PIECE_BYTES)) is not None:
            slave.append_log(piece)
            at = PhysicalOffset(at + len(piece.data))
            slave.dispatch(ALL)
        drive(slave.flush())
        slave.dispatch(ALL)
        with_queues = not self._deleted_to
        self._see(seen.Replicated(master, self._readout(slave, is_full=True), with_queues))

    def _put(self, store: MessageStore, to_send: messages.ToSend, *, early: bool) -> None:
        self.numbers += len(to_send.sent)
        for sent in to_send.sent:
            self._see(sent)
        now_ms = TimestampMs(self.now_ms)
        message = to_send.message
        result = store.put(message, now_ms) if isinstance(message, MessageToStore) else store.put_batch(message, now_ms)
        if not result.status.is_stored:
            for sent in to_send.sent:
                self._see(seen.Refused(sent.number, result.status.name))
            return
        physical_offset, queue_offset = int(result.physical_offset), int(result.queue_offset)
        for sent in to_send.sent:
            size = messages.record_bytes(sent, to_send.sent[0].number)
            self._see(seen.Stored(sent.number, physical_offset, size, queue_offset, result.store_timestamp_ms))
            physical_offset += size
            queue_offset += 1
        if result.size_bytes != physical_offset - result.physical_offset or result.count != len(to_send.sent):
            self._see(seen.Failed("put", f"a result of {result.size_bytes} bytes and {result.count} messages"))
        self._waiting.append((result, tuple(sent.number for sent in to_send.sent)))
        if early or not self.setting.sync_flush:
            self._answer(store)

    async def _during_flush(self) -> None:
        """A flush is under way: what was planned for this moment happens."""
        step = self._meanwhile
        if step is None or self.store is None:
            return
        self._flushes_left -= 1
        if self._flushes_left >= 0:
            return
        self._meanwhile = None
        message = h.AppendMessage(step.topic, step.queue)
        room = self.setting.log_file_bytes - self.store.log_max % self.setting.log_file_bytes
        self._put(self.store, messages.one(message, self.numbers, self.now_ms, room), early=False)
        if step.dispatch:
            self.store.dispatch(ALL)
            self._serve(h.ServeMessage(step.topic, step.queue), self.store)

    def _flush(self, store: MessageStore) -> None:
        drive(store.flush())
        self._note_progress()
        self._answer(store)

    def _answer(self, store: MessageStore) -> None:
        """Every waiting producer is told what may be told."""
        for result, numbers in self._waiting:
            status = store.ack_put(result)
            if status is PutStatus.PUT_OK:
                for number in numbers:
                    self._see(seen.AckPut(number, promises_power=self.setting.sync_flush))
        self._waiting.clear()

    def _clean(self, step: h.ExpireFile, store: MessageStore) -> None:
        self.now_ms += step.after_ms
        used = self.disk.usage("").total_bytes - self.disk.usage("").free_bytes
        self.disk.capacity_bytes = max(1, used * 100 // step.used_percent)
        before = tuple(
            (int(name), int(self.disk.info(f"commitlog/{name}").modified_ms)) for name in self.disk.list("commitlog")
        )
        due = step.hour == DELETE_HOUR or step.used_percent > 75
        safe_before = int(min(store.dispatched_to, store.flushed_to))
        removed = -1
        try:
            removed = drive(store.clean(TimestampMs(self.now_ms), step.hour))
        finally:
            self.disk.capacity_bytes = CAPACITY_BYTES
            self._see(
                seen.ExpireFile(
                    files=before,
                    begins_after=self._log_begins(before[-1][0] if before else 0) if removed >= 0 else (),
                    removed_count=removed,
                    now_ms=self.now_ms,
                    reserved_ms=RESERVED_MS,
                    forced=step.used_percent > 85,
                    allowed=due,
                    required=due,
                    files_max=FILES_MAX,
                    interrupted=removed < 0,
                    safe_to=int(min(store.dispatched_to, store.flushed_to)),
                    safe_before=safe_before,
                )
            )

    def _log_begins(self, last: int) -> tuple[int, ...]:
        """The files of the log up to one that is known; what a producer added meanwhile does not count."""
        return tuple(begin for begin in map(int, self.disk.list("commitlog")) if begin <= last)

    def _serve(self, step: h.ServeMessage, store: MessageStore) -> None:
        topic = messages.TOPICS[step.topic % len(messages.TOPICS)]
        queue_id = messages.QUEUES[step.queue % len(messages.QUEUES)]
        first, end = store.min_offset(topic, queue_id), store.max_offset(topic, queue_id)
        units = {unit.queue_offset: unit.tags_code for unit in store.units(topic, queue_id, first, ALL)}
        at = first
        while units and at < end:  # units never cross a file
            at = QueueOffset(max(units) + 1)
            more = store.units(topic, queue_id, at, ALL)
            if not more:
                break
            units.update({unit.queue_offset: unit.tags_code for unit in more})
        message_filter, wanted = MessageFilter(), tuple(sorted(units))
        if step.tag is not None:
            code = java_hash(messages.TAGS[step.tag % len(messages.TAGS)])
            message_filter = MessageFilter(tag_codes=frozenset({code}))
            wanted = tuple(offset for offset in wanted if units[QueueOffset(offset)] == code)
        offset = QueueOffset(max(0, end - step.behind))
        worst = raw.worst_case(self.disk)
        for _ in range(ALL):
            result = store.get_message(topic, queue_id, offset, step.count, message_filter)
            found = []
            for data in result.records:
                record = decoded(data)
                found.append(record.queue_offset if isinstance(record, Record) else -1)
                self._see(
                    seen.ServeMessage(
                        record,
                        topic,
                        queue_id,
                        found[-1],
                        is_durable=isinstance(record, Record)
                        and raw.holds(worst, record.physical_offset, data, self.setting.log_file_bytes),
                        must_be_durable=self.setting.sync_flush,
                    )
                )
            self._see(
                seen.Pulled(
                    topic,
                    queue_id,
                    offset,
                    step.count,
                    result.status.name,
                    result.next_offset,
                    result.min_offset,
                    result.max_offset,
                    tuple(found),
                    wanted,
                )
            )
            if (result.min_offset, result.max_offset) != (first, end):
                self._see(seen.Failed("get_message", f"bounds {result.min_offset}, {result.max_offset}"))
            if result.next_offset == offset or result.next_offset >= end:
                return
            offset = result.next_offset

    # --- crashes and starts -----------------------------------------------------------------------------------

    def _crash(self, how: h.ProcessCrash | h.PowerLoss) -> None:
        self.store = None
        self._armed = self._meanwhile = None
        self._waiting.clear()
        match how:
            case h.ProcessCrash():
                self.disk = self.disk.after_process_crash()
                self._see(seen.ProcessCrash(loses_unwritten=self.setting.transient_pool))
            case h.PowerLoss(survivors=survivors, harsh=harsh):
                self.disk = self.disk.after_power_loss(scripted(survivors, harshest if harsh else mildest))
                self._see(seen.PowerLoss())

    def _start(self, step: h.StartStore) -> None:
        undisturbed = self._undisturbed(step)
        self.disk.cancel_faults()
        for how, at, survivors in step.deaths:
            self.disk.crash_at(self.disk.operations + at, scripted(survivors))
            try:
                drive(self.engine.open_store(self.disk, self.setting).start(TimestampMs(self.now_ms)))
                self.disk.kill()  # it came through; then it dies right after
            except SimulatedCrash:
                pass
            except Exception as error:
                self._cannot_start(error)
                return
            self._crash(h.ProcessCrash() if how == "process" else h.PowerLoss(survivors=survivors))
        try:
            store = self.engine.open_store(self.disk, self.setting)
            report = drive(store.start(TimestampMs(self.now_ms)))
        except Exception as error:
            self._cannot_start(error)
            return
        self.store = store
        # On a full disk a file may have ended with its blank and no next one: the log is then cut back to the blank.
        again = 0 if self._disk_was_full else report.records_dispatched
        self._see(seen.StartStore(report.was_clean, report.valid_to, again))
        self._flushed_to = -1
        self._note_progress()
        readout = self._readout(store, is_full=True)
        self._see(readout)
        if undisturbed is not None:
            self._see(seen.Recovered(undisturbed, readout))

    def _undisturbed(self, step: h.StartStore) -> seen.Readout | None:
        """What a start without deaths gives, if the deaths of this one must not make a difference."""
        if not step.deaths or not (self.disk.is_durable or all(how == "process" for how, _, _ in step.deaths)):
            return None
        store = self.engine.open_store(self.disk.copy(), self.setting)
        try:
            drive(store.start(TimestampMs(self.now_ms)))
        except Exception:
            return None  # the start itself will show it
        return self._readout(store, is_full=True)

    def _readout(self, store: MessageStore, *, is_full: bool) -> seen.Readout:
        hides = self.setting.transient_pool and not is_full
        return read_everything(store, self.setting.log_file_bytes, is_full=is_full, hides_unwritten=hides)

    def _cannot_start(self, error: Exception) -> None:
        self.is_broken = True
        if isinstance(error, DamagedLog) and self._may_refuse:
            # Somebody said that lost bytes were durable: a checkpoint from the future, half of one, or no abort file
            # after a power loss. To refuse is a right answer.
            return
        self._see(seen.StartFailed(f"{type(error).__name__}: {error}"))

    def _damage(self, step: h.DamageAbort | h.DamageCheckpoint | h.StrayFile | h.LoseDerived) -> None:
        self._see(seen.Damaged(type(step).__name__))
        match step:
            case h.DamageAbort(present=True):
                self.disk.put_contents({ABORT: b""})
            case h.DamageAbort():
                self._may_refuse = True
                self.disk.take_away(ABORT)
            case h.DamageCheckpoint(how):
                self._damage_checkpoint(how)
            case h.StrayFile(where):
                self._stray(where)
            case h.LoseDerived(what):
                prefix = "index/" if what == "index" else "consumequeue/"
                gone = [path for path in self.disk.contents() if path.startswith(prefix)]
                if what == "one queue":
                    gone = [path for path in gone if gone[0].rpartition("/")[0] == path.rpartition("/")[0]]
                for path in gone:
                    self.disk.take_away(path)

    def _damage_checkpoint(self, how: str) -> None:
        stamps = self.disk.contents().get(CHECKPOINT, b"")
        self.disk.take_away(CHECKPOINT)
        later = (self.now_ms + 3_600_000).to_bytes(8, "big")
        match how:
            case "missing":
                return
            case "empty":
                stamps = b""
            case "zero":
                stamps = bytes(4096)
            case "behind":
                stamps = (BEGIN_MS - 1).to_bytes(8, "big") * 3 + bytes(4072)
            case "ahead":
                stamps = later * 3 + bytes(4072)
                self._is_lied_to = self._may_refuse = True
            case _:
                self._may_refuse = True
                stamps = stamps[:8] + bytes(max(0, len(stamps) - 8))
        self.disk.put_contents({CHECKPOINT: stamps})

    def _stray(self, where: str) -> None:
        size = self.setting.log_file_bytes
        if where == "queue":
            for topic in self.disk.list("consumequeue"):
                for queue_id in self.disk.list(f"consumequeue/{topic}"):
                    names = self.disk.list(f"consumequeue/{topic}/{queue_id}")
                    end = int(names[-1]) + self.setting.queue_file_units * raw.UNIT_BYTES if names else 0
                    self.disk.put_contents({f"consumequeue/{topic}/{queue_id}/{end:020}": b""})
                    return
        else:
            names = self.disk.list("commitlog")
            end = int(names[-1]) + size if names else 0
            self.disk.put_contents({f"commitlog/{end:020}": b"" if where == "log" else bytes(size)})

    # --- observing --------------------------------------------------------------------------------------------

    def _see(self, observation: seen.Observation) -> None:
        self.observations.append(observation)

    def _failed(self, step: h.Step, error: Exception) -> None:
        self._see(seen.Failed(type(step).__name__, f"{type(error).__name__}: {error}"))

    def _note_progress(self) -> None:
        """What the store claims to be durable, and what its checkpoint claims."""
        if self.store is not None and self.store.flushed_to != self._flushed_to:
            self._flushed_to = self.store.flushed_to
            self._see(seen.FlushLog(self._flushed_to))
        if self.store is not None:
            self._note_checkpoint()

    def _note_checkpoint(self) -> None:
        if self._is_lied_to or not self.disk.exists(CHECKPOINT):
            return
        size = self.disk.info(CHECKPOINT).size_bytes
        stamps = self.disk.open(CHECKPOINT, writable=False).read(0, min(128, size))
        if stamps != self._checkpoint_bytes:
            self._checkpoint_bytes = stamps
            self._see(raw.checkpoint(self.disk, self.setting, self._deleted_to))


def run_history(history: h.History, engine: str = "reference") -> tuple[list[Violation], list[seen.Observation]]:
    """Lives through a history and judges it."""
    runner = Runner(history.setting, store_engine(engine))
    for step in history.steps:
        runner.take(step)
    return runner.finish(), runner.observations
