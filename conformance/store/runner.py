"""Takes the steps of a history one by one, on the simulated disk, and writes down what can be observed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from conformance.base import Violation
from conformance.engines import StoreEngine, store_engine
from conformance.oracles import store_events as seen
from conformance.oracles.store import judge
from conformance.store import at_rest, damage, messages, raw, telling
from conformance.store import history as h
from conformance.store.counted import Cells, Told
from conformance.store.damage import ABORT, CHECKPOINT
from conformance.store.damaged import leftovers, must_be_refused, start_damaged
from conformance.store.drive import ack, drive, plan, put
from conformance.store.flush_rules import FlushRules, not_durable, queues_with_full_pages
from conformance.store.readout import ALL, read_everything
from conformance.store.replica import replicate
from conformance.store.serving import serve
from refmq.errors import DamagedLog, DiskError, DiskFailed, StoreInUse
from refmq.model.ids import TimestampMs
from refmq.sim.choice import harshest, mildest, scripted
from refmq.sim.disk import Fault, SimulatedCrash, SimulatedDisk
from refmq.store import MessageStore, PutResult, PutStatus, RecoveryReport
from refmq.store.text_file import read_text_file, read_text_file_or_backup, replace_text_file

BEGIN_MS: Final = 1_700_000_000_000
RESERVED_MS: Final = 72 * 3600 * 1000
DELETE_HOUR: Final = 4
CAPACITY_BYTES: Final = 1 << 40
FULL_PERCENT: Final = 90
CONFIG: Final = "config/delayOffset.json"
_MAY_FAIL: Final = (
    h.FlushLog,
    h.Maintain,
    h.StopStore,
    h.RestartStore,
    h.ExpireFile,
    h.CleanQueues,
    h.DispatchMessage,
    h.SaveConfig,
)
"""Steps that a full or failing disk may stop."""
_FLUSHING: Final = (h.FlushLog, h.Maintain, h.ExpireFile, h.CleanQueues)
"""Steps after which nothing may be accepted if they could not make something durable."""


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
    told: Told | None = None
    """Counts what the store does."""

    def __post_init__(self) -> None:
        self.disk = SimulatedDisk(
            clock=lambda: TimestampMs(self.now_ms),
            page_bytes=self.setting.page_bytes,
            capacity_bytes=CAPACITY_BYTES,
            on_flush=self._during_flush,
        )
        self._deleted_to: dict[str, int] = {}
        self._foreign: dict[str, bytes] = {}
        """Files in the store's directories that belong to somebody else, and what they hold."""
        self._meanwhile: h.Meanwhile | None = None
        self._flushes_left = 0
        self._waiting: list[tuple[PutResult, tuple[int, ...]]] = []
        self._armed: h.ProcessCrash | h.PowerLoss | None = None
        self._flushed_to = 0
        self._checkpoint_bytes = b""
        self._is_lied_to = False  # a checkpoint that is not the store's own says more than is true
        self._may_refuse = False
        self._clock_was_set_back = False
        self._used_percent = 0
        """How full the disk was when somebody last looked."""
        self._may_lack_room = False
        """Whether somebody wrote to a disk that was nearly full, and was possibly stopped by it."""
        self._is_at_rest = False
        """Whether the last life ended with a clean stop, and nothing was done to the files since."""
        self._rules: FlushRules | None = None
        self._told: dict[tuple[str, int], int] = {}
        """The newest offset of each queue that was reported, since the start or since the topic was deleted."""
        """When the log has to be flushed; None when something has come in between."""
        self._has_deleted = False
        """Whether a topic was deleted: the next `maintain` makes everything durable."""
        self._owes_checkpoint = False
        """Whether a checkpoint found no room: the next `maintain` writes it."""
        self._may_owe = False
        """The same, or perhaps it was somebody else who found no room."""
        self._has_failed = False
        """Whether the store could not make something durable: it promises nothing any more."""
        self._appended_to = 0
        self._host = messages.HOST_IPV6 if self.setting.store_ipv6 else messages.HOST
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
            if isinstance(error, DiskFailed) and isinstance(step, _FLUSHING):
                assert self.store is not None
                self._has_failed = True
                if self.store.accepts_puts:
                    self._see(seen.Failed(type(step).__name__, "a flush failed, and puts are accepted all the same"))
            # A full or failing disk may stop an awaited operation; nothing that was promised may depend on it.
            is_excused = bool(self.disk.happened) or isinstance(step, h.ExpireFile)  # which has a full disk of its own
            if not isinstance(step, _MAY_FAIL) or not is_excused:
                self._failed(step, error)
            elif isinstance(step, h.StopStore | h.RestartStore):
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
        self.take(h.Replicate())
        return judge(self.observations)

    def _take(self, step: h.Step) -> None:
        store = self.store
        match step:
            case h.AdvanceClock(by_ms):
                self._clock_was_set_back |= by_ms < 0
                self.now_ms = max(BEGIN_MS, self.now_ms + by_ms)
            case h.StartStore() if store is None:
                self._start(step)
            case h.DamageAbort() | h.DamageCheckpoint() | h.DamageConfig() | h.StrayFile() | h.LoseDerived() if (
                store is None
            ):
                self._damage(step)
            case h.DamageRecord() if store is None:
                self._damage_record(step)
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
                self._put(store, messages.one(step, self.numbers, self.now_ms, room, self._host), early=step.early)
            case h.AppendBatch():
                self._put(store, messages.batch(step, self.numbers, self.now_ms, self._host), early=False)
            case h.AppendIllegal():
                self._put_illegal(store, step)
            case h.FlushLog():
                self._flush(store)
            case h.DispatchMessage(count):
                self._dispatch(store, count)
            case h.Maintain(after_ms):
                self.now_ms += after_ms
                self._maintain(store, after_ms)
            case h.ExpireFile():
                self._clean(step, store)
            case h.CleanQueues():
                is_disturbed = self._meanwhile is not None
                drive(store.clean_queues())
                self._look_for_expired_files(store, is_disturbed)
            case h.ServeMessage():
                self._serve(step, store)
            case h.ReadEverything():
                self._see(self._readout(store, is_full=False))
            case h.DeleteTopic(topic):
                self._delete_topic(store, messages.TOPICS[topic % len(messages.TOPICS)])
            case h.StopStore():
                self._stop(store)
                self.disk = self.disk.after_process_crash()  # a new process, with nothing lost
            case h.RestartStore():
                self._stop(store)
                self._is_at_rest = False  # the start may die
                try:
                    self._started(store, drive(store.start(TimestampMs(self.now_ms))))
                except DiskError as error:  # the step may be stopped by a fault; a start here may not fail for it
                    if not self.disk.happened:
                        raise AssertionError(f"a second start failed: {error}") from error
                    raise
            case h.Meanwhile(flushes):
                self._meanwhile, self._flushes_left = step, flushes
            case h.Replicate():
                self._replicate(step, store)
            case h.SecondProcess():
                self._second_process()
            case h.SaveConfig(value):
                self._save_config(value)
            case h.FailFlush():
                self._see(seen.DiskFault())
                self.disk.inject(Fault.FLUSH_FAILS)
            case h.FillDisk(effects):
                self._see(seen.DiskFault())
                self.disk.inject(Fault.DISK_FULL, self.disk.operations + effects)
            case _:
                pass

    def _stop(self, store: MessageStore) -> None:
        self._meanwhile = None  # nothing is sent to a store that is being stopped
        try:
            drive(store.stop(TimestampMs(self.now_ms)))
        finally:
            self.store = None
            self._waiting.clear()
            self.observations.extend(leftovers(self.disk, "StopStore"))
        self._see(seen.StopStore())
        self._note_checkpoint()
        self._look_at_rest()

    def _maintain(self, store: MessageStore, after_ms: int) -> None:
        flushed, dispatched, faults = store.flushed_to, store.dispatched_to, len(self.disk.happened)
        full_queues = queues_with_full_pages(self._rules, store, self.disk)
        is_disturbed = self._meanwhile is not None
        drive(store.maintain(TimestampMs(self.now_ms)))
        was_set_back, self._clock_was_set_back = self._clock_was_set_back, False
        if not store.accepts_puts or faults < len(self.disk.happened) or is_disturbed:
            self._rules = None  # the disk is full, or a flush has failed: it tries again when it can
        if not store.accepts_puts:
            is_full = faults < len(self.disk.happened) or self._used_percent > FULL_PERCENT
            has_failed = Fault.FLUSH_FAILS in self.disk.happened
            is_full |= store.dispatched_to < (store.flushed_to if self.setting.sync_flush else store.log_max)
            if self._owes_checkpoint and not (is_full or has_failed or is_disturbed):
                self._see(seen.Failed("maintain", "there is room again, and puts are refused"))
            # It had to make everything durable and found no room: the next round does it, whatever the time. With
            # somebody at work meanwhile nobody knows whom the full disk met.
            self._may_owe = faults < len(self.disk.happened) and not has_failed
            self._owes_checkpoint = self._may_owe and not is_disturbed
            return
        self._may_owe = False
        if not self.disk.happened and not is_disturbed:
            self._see(seen.DeletionsKept())
        self._judge_maintain(store, flushed)
        if self._rules is not None and self._rules.by_queue_pages:
            for sentence in not_durable(full_queues, self.disk):
                self._see(seen.Failed("maintain", sentence))
        if was_set_back or self._is_lied_to:
            return  # nobody knows how much time has passed, or what is durable
        is_thorough = self._rules is not None and self._rules.by_queues
        if is_thorough or self._owes_checkpoint:
            self._owes_checkpoint = False
            found = raw.checkpoint(self.disk, self.setting, self._deleted_to)
            behind = [offset for _, offset in found.missing_in_queues if offset < dispatched]
            if behind:
                self._see(seen.Failed("maintain", f"it is time, and the units of {behind} are not durable"))
            is_half_indexed = self.disk.happened and store.dispatched_to < store.log_max
            if 0 <= found.queues_to < dispatched and not is_half_indexed:
                self._see(seen.Failed("maintain", f"it is time, and the checkpoint says {found.queues_to}"))
            self._look_for_expired_files(store, is_disturbed)

    def _judge_maintain(self, store: MessageStore, flushed: int) -> None:
        """The log is flushed when its rules say so, and otherwise not."""
        rules = self._rules
        if rules is None:
            return
        if self.setting.sync_flush and store.flushed_to != store.log_max:
            self._see(seen.Failed("maintain", f"{store.flushed_to} of {store.log_max} is flushed, and nobody waits"))
        has_deleted, self._has_deleted = self._has_deleted, False
        if self.setting.sync_flush:
            rules.flushes(self.now_ms, 0, 0, has_deleted=has_deleted)
            return
        if self.setting.transient_pool and rules.commits(self.now_ms) and store.log_max < self._appended_to:
            self._see(seen.Failed("maintain", f"only {store.log_max} of {self._appended_to} left the transient pool"))
        is_due = rules.flushes(self.now_ms, flushed, store.log_max, has_deleted=has_deleted)
        expected = store.log_max if is_due else flushed
        if store.flushed_to != expected:
            self._see(seen.Failed("maintain", f"the log is flushed to {store.flushed_to} instead of {expected}"))

    def _dispatch(self, store: MessageStore, count: int) -> None:
        """Whoever waits for messages hears of each one, in order."""
        begin, faults = store.dispatched_to, len(self.disk.happened)
        told = store.dispatch(count)
        self._may_lack_room = False
        bound = store.flushed_to if self.setting.sync_flush else store.log_max
        if faults == len(self.disk.happened):
            if not told and store.dispatched_to < bound:
                self._see(seen.Failed("dispatch", f"nothing from {begin} on, and the log can be dispatched to {bound}"))
            has_failed = Fault.FLUSH_FAILS in self.disk.happened
            is_full = self._may_owe or self._used_percent > FULL_PERCENT
            if not store.accepts_puts and not has_failed and not is_full:
                self._see(seen.Failed("dispatch", "there is room again, and puts are refused"))
        if store.dispatched_to > max(begin, bound):
            self._see(seen.Failed("dispatch", f"dispatched to {store.dispatched_to}, and only {bound} may be served"))
        for sentence in telling.faults(store, self.setting, begin, told, count):
            self._see(seen.Failed("dispatch", sentence))
        for sentence in telling.told_before(told, self._told):
            self._see(seen.Failed("dispatch", sentence))

    def _replicate(self, step: h.Replicate, store: MessageStore) -> None:
        master = self._readout(store, is_full=True)
        if master.log_fault or master.dispatched_to < master.log_max:
            return
        with_queues = not self._deleted_to
        self.observations.extend(
            replicate(
                step,
                store,
                master,
                self.engine,
                self.setting,
                now_ms=self.now_ms,
                number=1_000_000,
                with_queues=with_queues,
            )
        )

    def _put_illegal(self, store: MessageStore, step: h.AppendIllegal) -> None:
        message = messages.illegal(step, self.numbers, self.now_ms)
        before, accepts = store.log_max, store.accepts_puts
        now_ms = TimestampMs(self.now_ms)
        result = put(store, message, now_ms)
        expected = PutStatus.MESSAGE_ILLEGAL if accepts else PutStatus.SERVICE_NOT_AVAILABLE
        if result.status is not expected or store.log_max != before:
            self._see(seen.Failed("put", f"{result.status.name} for a message with {step.how}"))

    def _put(self, store: MessageStore, to_send: messages.ToSend, *, early: bool) -> None:
        self.numbers += len(to_send.sent)
        for sent in to_send.sent:
            self._see(sent)
        now_ms = TimestampMs(self.now_ms)
        accepts, faults = store.accepts_puts, len(self.disk.happened)
        place = messages.next_place(
            max(self._appended_to, int(store.log_max)), to_send.sent, self.setting.log_file_bytes
        )
        message = to_send.message
        planned = plan(store, message, now_ms)
        status = planned if isinstance(planned, PutStatus) else store.append(planned)
        if isinstance(planned, PutStatus) or not status.is_stored:
            for sent in to_send.sent:
                self._see(seen.PutRefused(sent.number, status.name))
            is_legal = messages.is_legal(to_send, self.setting)
            has_room = self.disk.capacity_bytes == CAPACITY_BYTES
            if is_legal and accepts and has_room and faults == len(self.disk.happened):
                self._see(seen.Failed("put", f"{status.name} for a message that can be stored"))
            if not is_legal and accepts and status is not messages.refusal(to_send, self.setting):
                self._see(seen.Failed("put", f"{status.name} for a message that is not legal"))
            return
        if not messages.is_legal(to_send, self.setting):
            self._see(seen.Failed("put", "a message that fits no record was stored"))
        result = PutResult.of(status, planned)
        if (places := messages.misplaced(planned, to_send.sent)) is not None:
            self._see(seen.Failed("put", places))
        physical_offset, queue_offset = int(result.physical_offset), int(result.queue_offset)
        if physical_offset != place and not self.disk.happened:  # a roll that found no room may be half done
            self._see(seen.Failed("put", f"a record was put at {physical_offset} instead of {place}"))
        for sent in to_send.sent:
            size = messages.record_bytes(sent)
            self._see(seen.Stored(sent.number, physical_offset, size, queue_offset, result.store_timestamp_ms))
            physical_offset += size
            queue_offset += 1
        first = to_send.sent[0]
        expected = (first.topic, first.queue_id, len(to_send.sent), physical_offset, messages.ids(result, to_send.sent))
        if (result.topic, result.queue_id, result.count, result.durable_at, result.message_id) != expected:
            self._see(seen.Failed("put", f"{result} instead of {expected}"))
        if result.size_bytes != physical_offset - result.physical_offset:
            self._see(seen.Failed("put", f"a result of {result.size_bytes} bytes"))
        self._appended_to = max(self._appended_to, int(result.durable_at))
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
        self._meanwhile = replace(step, times=step.times - 1) if step.times > 1 else None
        self._may_lack_room |= self.disk.capacity_bytes != CAPACITY_BYTES
        if step.delete:
            self._delete_topic(self.store, messages.TOPICS[step.topic % len(messages.TOPICS)])
        message = h.AppendMessage(step.topic, step.queue, step.body_bytes, keys=step.keys)
        for _ in range(step.count):
            self.now_ms += step.after_ms
            room = self.setting.log_file_bytes - self.store.log_max % self.setting.log_file_bytes
            self._put(self.store, messages.one(message, self.numbers, self.now_ms, room, self._host), early=False)
        if step.dispatch:
            self.store.dispatch(ALL)
            self._serve(h.ServeMessage(step.topic, step.queue), self.store)

    def _delete_topic(self, store: MessageStore, name: str) -> None:
        end = int(store.log_max)
        self._deleted_to[name] = end
        self._has_deleted = True
        self._see(seen.DeleteTopic(name, end, store.dispatched_to))  # before: it may die half way
        store.delete_topic(name)
        self._told = {key: offset for key, offset in self._told.items() if key[0] != name}

    def _flush(self, store: MessageStore) -> None:
        covered = max((int(result.durable_at) for result, _ in self._waiting), default=0)
        drive(store.flush())
        self._note_progress()
        self._answer(store, covered)

    def _answer(self, store: MessageStore, covered: int = 0) -> None:
        """Every waiting producer is told what may be told. `covered` is how far a flush had to go, if there was one."""
        for result, numbers in self._waiting:
            status = ack(store, result, sync_flush=self.setting.sync_flush)
            is_safe = not self.setting.sync_flush or result.durable_at <= max(covered, store.flushed_to)
            if is_safe and status is not PutStatus.PUT_OK and store.accepts_puts:
                self._see(seen.Failed("AckPut", f"{status.name} for {result}, flushed to {store.flushed_to}"))
            if status is PutStatus.PUT_OK and self._has_failed:
                self._see(seen.Failed("AckPut", f"PUT_OK for {result} after a flush has failed"))
            if status is PutStatus.PUT_OK:
                for number in numbers:
                    self._see(seen.AckPut(number, promises_power=self.setting.sync_flush))
        self._waiting.clear()

    def _clean(self, step: h.ExpireFile, store: MessageStore) -> None:
        self.now_ms += step.after_ms
        used = self.disk.usage("").total_bytes - self.disk.usage("").free_bytes
        self.disk.capacity_bytes = max(1, -(-used * 100 // step.used_percent))
        before = tuple(
            (int(name), int(self.disk.info(f"commitlog/{name}").modified_ms)) for name in self.disk.list("commitlog")
        )
        due = step.hour in (DELETE_HOUR, None) or step.used_percent > 75
        has_failed = Fault.FLUSH_FAILS in self.disk.happened
        safe_before = self._safe_to(store)
        removed, is_disturbed = -1, self._meanwhile is not None
        self._used_percent = step.used_percent
        try:
            removed = drive(store.clean(TimestampMs(self.now_ms), step.hour))
            if store.accepts_puts and step.used_percent > FULL_PERCENT:
                self._see(seen.Failed("clean", f"puts are accepted on a disk that is {step.used_percent} % full"))
            if removed > 0:
                self._look_for_expired_files(store, is_disturbed)
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
                    required=due and not has_failed,
                    files_max=self.setting.files_max,
                    interrupted=removed < 0,
                    safe_to=self._safe_to(store),
                    safe_before=safe_before,
                )
            )

    def _safe_to(self, store: MessageStore) -> int:
        """Up to where the log is not needed to build queues and index again, not even after a power loss."""
        dispatched_to = int(min(store.dispatched_to, store.flushed_to))
        return min(dispatched_to, raw.queues_to(raw.worst_case(self.disk), dispatched_to))

    def _look_for_expired_files(self, store: MessageStore, is_disturbed: bool) -> None:
        if not self.disk.happened and not is_disturbed:
            durable = raw.worst_case(self.disk)
            queue_files = raw.expired_queue_files(durable, store.log_min, store.flushed_to)
            for path in (*queue_files, *raw.expired_index_files(self.disk.contents(), store.log_min)):
                if self.disk.exists(path):  # that of a deleted topic may come back, which is another thing
                    self._see(seen.Failed("clean", f"{path} speaks of expired records only and is still there"))

    def _log_begins(self, last: int) -> tuple[int, ...]:
        """The files of the log up to one that is known; what a producer added meanwhile does not count."""
        return tuple(begin for begin in map(int, self.disk.list("commitlog")) if begin <= last)

    def _serve(self, step: h.ServeMessage, store: MessageStore) -> None:
        self.observations.extend(serve(step, store, self.disk, self.setting))

    def _second_process(self) -> None:
        """A second store on the same directory is refused before it has changed anything."""
        before = self.disk.contents()
        meanwhile, self._meanwhile = self._meanwhile, None
        try:
            another = self.disk.another_process()
            drive(self.engine.open_store(another, self.setting).start(TimestampMs(self.now_ms)))
            self._see(seen.Failed("SecondProcess", "a store was started in a directory that is in use"))
        except StoreInUse:
            self.observations.extend(leftovers(another, "SecondProcess"))
        self._meanwhile = meanwhile
        if self.disk.contents() != before:
            self._see(seen.Failed("SecondProcess", "a store that was refused has changed files"))

    def _save_config(self, value: int) -> None:
        previous = read_text_file(self.disk, CONFIG)
        self._see(seen.SaveConfig(value))
        drive(replace_text_file(self.disk, CONFIG, str(value).encode()))
        self._see(seen.ConfigSaved(value))
        backup = read_text_file(self.disk, f"{CONFIG}.bak")
        if previous and previous != str(value).encode() and backup != previous:
            self._see(seen.Failed("SaveConfig", f"the backup holds {backup!r}, not {previous!r}"))

    # --- crashes and starts -----------------------------------------------------------------------------------

    def _crash(self, how: h.ProcessCrash | h.PowerLoss) -> None:
        if self.told is not None:
            self.told.fault(type(how).__name__)
        self.store = None
        self._armed = self._meanwhile = None
        self._waiting.clear()
        match how:
            case h.ProcessCrash():
                self.disk = self.disk.after_process_crash()
                self._see(seen.ProcessCrash(loses_unwritten=self.setting.transient_pool))
            case h.PowerLoss(survivors=survivors, harsh=harsh):
                self.disk = self.disk.after_power_loss(scripted(survivors, harshest if harsh else mildest))
                self._foreign = {path: data for path, data in self._foreign.items() if self.disk.exists(path)}
                self._see(seen.PowerLoss())

    def _start(self, step: h.StartStore) -> None:
        undisturbed = self._undisturbed(step)
        self._is_at_rest = False
        before, was_durable = self.disk.contents(), self.disk.is_durable
        self.disk.cancel_faults()
        for how, at, survivors in step.deaths:
            self.disk.crash_at(self.disk.operations + at, scripted(survivors))
            try:
                drive(self._open_store().start(TimestampMs(self.now_ms)))
                self.disk.kill()  # it came through; then it dies right after
            except SimulatedCrash:
                pass
            except Exception as error:
                self._cannot_start(error)
                return
            self._crash(h.ProcessCrash() if how == "process" else h.PowerLoss(survivors=survivors))
            after = self.disk.contents()
            if was_durable and ABORT not in after and raw.differences(before, after):
                self._see(seen.Failed("StartStore", "a start has changed files, and they look cleanly stopped"))
        try:
            store = self._open_store()
            report = drive(store.start(TimestampMs(self.now_ms)))
        except Exception as error:
            self._cannot_start(error)
            return
        readout = self._started(store, report)
        if undisturbed is not None:
            self._see(seen.Recovered(undisturbed, readout))

    def _open_store(self) -> MessageStore:
        return self.engine.open_store(self.disk, self.setting, None if self.told is None else self.told.event)

    def _started(self, store: MessageStore, report: RecoveryReport) -> seen.Readout:
        self.store = store
        self._used_percent = 0
        self._told = {}
        self._may_lack_room = False
        self._rules = FlushRules.since(self.now_ms, self.setting.flush_page_bytes)
        self._has_deleted = self._owes_checkpoint = self._may_owe = self._has_failed = False
        self._appended_to = 0
        self._see(seen.StartStore(report.was_clean, report.valid_to, report.records_dispatched, report.notes))
        worst = raw.worst_case(self.disk)
        if ABORT not in worst:
            self._see(seen.Failed("StartStore", "a power loss now would look like a clean stop"))
        differ = raw.differences(worst, self.disk.contents())
        if differ and not self.disk.happened:
            self._see(seen.Failed("StartStore", f"a start serves, and a power loss now would change {differ}"))
        config = read_text_file_or_backup(self.disk, CONFIG)
        self._see(seen.ConfigRead(int(config) if config is not None else -1))
        self._flushed_to = -1
        self._note_progress()
        readout = self._readout(store, is_full=True)
        self._see(readout)
        changed = sorted(path for path, data in self._foreign.items() if self.disk.contents().get(path) != data)
        if changed:
            self._see(seen.Failed("StartStore", f"files of somebody else were changed: {changed}"))
        return readout

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

    def _look_at_rest(self) -> None:
        """After a clean stop everything is durable, and every file as its format says."""
        contents = raw.worst_case(self.disk)
        differ = raw.differences(contents, self.disk.contents())
        if differ or ABORT in contents:
            self._see(seen.Failed("StopStore", f"a power loss now would change {differ}; abort: {ABORT in contents}"))
        for fault in at_rest.faults(contents, self.setting, self._deleted_to):
            self._see(seen.Failed("StopStore", fault))
        self._is_at_rest = True

    def _readout(self, store: MessageStore, *, is_full: bool) -> seen.Readout:
        hides = self.setting.transient_pool and not is_full
        return read_everything(store, self.setting, is_full=is_full, hides_unwritten=hides)

    def _cannot_start(self, error: Exception) -> None:
        self.is_broken = True
        if isinstance(error, DamagedLog) and self._may_refuse:
            # Somebody said that lost bytes were durable: a checkpoint from the future, half of one, or no abort file
            # after a power loss. To refuse is a right answer.
            return
        self._see(seen.StartFailed(f"{type(error).__name__}: {error}"))

    def _damage(self, step: h.DamageAbort | h.DamageCheckpoint | h.DamageConfig | h.StrayFile | h.LoseDerived) -> None:
        if isinstance(step, h.DamageConfig):
            self._damage_config(step)
            return
        self._see(seen.Damaged(type(step).__name__))
        self._is_at_rest = False
        match step:
            case h.DamageAbort(present=True):
                self.disk.put_contents({ABORT: b""})
            case h.DamageAbort():
                self._may_refuse = True
                self.disk.take_away(ABORT)
            case h.DamageCheckpoint(how):
                damage.damage_checkpoint(self.disk, how, BEGIN_MS, self.now_ms)
                self._is_lied_to |= how == "ahead"
                self._may_refuse |= how in ("ahead", "torn")
            case h.StrayFile(where):
                path = damage.stray_file(self.disk, self.setting, where)
                if where in damage.FOREIGN:
                    assert path is not None
                    self._foreign[path] = self.disk.contents()[path]
                elif path is not None:
                    self.observations.extend(must_be_refused(path, self.disk, self.setting, self.engine, self.now_ms))
                    self.disk = self.disk.after_process_crash()
                    self.disk.take_away(path)
            case h.LoseDerived(what):
                damage.lose_derived(self.disk, what)
                self._foreign = {path: data for path, data in self._foreign.items() if self.disk.exists(path)}

    def _damage_config(self, step: h.DamageConfig) -> None:
        if not self.disk.exists(CONFIG):
            return
        self.disk.take_away(CONFIG)
        if step.how == "empty":
            self.disk.put_contents({CONFIG: b""})
        self._see(seen.ConfigLost())

    def _damage_record(self, step: h.DamageRecord) -> None:
        if self._is_at_rest:
            now_ms = TimestampMs(self.now_ms)
            self.observations.extend(start_damaged(step, self.disk.copy(), self.setting, self.engine, now_ms))

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
            may_refuse = self.disk.happened or self._may_lack_room or self._used_percent > FULL_PERCENT
            if not self.store.accepts_puts and not may_refuse:
                self._see(seen.Failed("put", "puts are refused although nothing is wrong"))

    def _note_checkpoint(self) -> None:
        if self._is_lied_to or not self.disk.exists(CHECKPOINT):
            return
        size = self.disk.info(CHECKPOINT).size_bytes
        file = self.disk.open(CHECKPOINT, writable=False)
        stamps = file.read(0, min(128, size))
        file.close()
        if stamps != self._checkpoint_bytes:
            self._checkpoint_bytes = stamps
            found = raw.checkpoint(self.disk, self.setting, self._deleted_to)
            if not self.disk.has_planned_faults:
                self._see(seen.FaultsOver())
            self._see(found)
            if not found.is_durable and not self.disk.happened:
                self._see(seen.Failed("WriteCheckpoint", "a power loss now would bring back the checkpoint before it"))


@dataclass
class Run:
    """What came of a history."""

    violations: list[Violation]
    observations: list[seen.Observation]
    told: Told | None

    @property
    def events(self) -> int:
        return len(self.observations)

    def cells(self) -> Cells:
        """What happened, for the coverage."""
        return self.told.cells if self.told is not None else Cells()


def run_history(history: h.History, engine: str = "reference", *, counted: bool = False) -> Run:
    """Lives through a history and judges it. With `counted` its steps, events and faults are counted, which costs a
    third more."""
    told = Told() if counted else None
    runner = Runner(history.setting, store_engine(engine), told=told)
    for step in history.steps:
        runner.take(step)
        if told is not None:
            told.take(step, runner.disk)
    return Run(runner.finish(), runner.observations, told)
