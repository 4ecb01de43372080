"""Takes the steps of a history one by one, on the simulated disk: drives a store through its lives.

Steps of which one knows what they must do are taken in `stepping` and judged in `judging`; `observing` looks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from conformance.engines import StoreEngine, store_engine
from conformance.oracles import store_events as seen
from conformance.oracles.store import judge
from conformance.store import damage, messages, observing, raw, stepping
from conformance.store import history as h
from conformance.store.counted import Cells, Told
from conformance.store.damage import ABORT
from conformance.store.damaged import leftovers, must_be_refused, start_damaged
from conformance.store.drive import drive
from conformance.store.flush_rules import FlushRules
from conformance.store.readout import ALL
from conformance.store.replica import replicate
from conformance.store.serving import serve
from conformance.store.stepping import CAPACITY_BYTES
from refmq.errors import DamagedLog, DiskError, DiskFailed, StoreInUse
from refmq.model.ids import TimestampMs
from refmq.sim.choice import harshest, mildest, scripted
from refmq.sim.disk import Fault, SimulatedCrash, SimulatedDisk
from refmq.store import MessageStore, PutResult, RecoveryReport
from refmq.store.text_file import read_text_file, read_text_file_or_backup, replace_text_file
from refmq.verify.oracles.base import Finding

BEGIN_MS: Final = 1_700_000_000_000
CONFIG: Final = "config/delayOffset.json"
_MAY_FAIL: Final = (
    *(h.FlushLog, h.Maintain, h.StopStore, h.RestartStore),
    *(h.ExpireFile, h.CleanQueues, h.DispatchMessage, h.SaveConfig),
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
    counter: Told | None = None
    """Counts what the store does."""

    def __post_init__(self) -> None:
        self.disk = SimulatedDisk(
            clock=lambda: TimestampMs(self.now_ms),
            page_bytes=self.setting.page_bytes,
            capacity_bytes=CAPACITY_BYTES,
            on_flush=self._during_flush,
        )
        self.deleted_to: dict[str, int] = {}
        self.foreign: dict[str, bytes] = {}
        """Files in the store's directories that belong to somebody else, and what they hold."""
        self.meanwhile: h.Meanwhile | None = None
        self.flushes_left = 0
        self.waiting: list[tuple[PutResult, tuple[int, ...]]] = []
        self.armed: h.ProcessCrash | h.PowerLoss | None = None
        self.flushed_to = 0
        self.checkpoint_bytes = b""
        self.is_lied_to = False  # a checkpoint that is not the store's own says more than is true
        self.may_refuse = False
        self.clock_was_set_back = False
        self.used_percent = 0
        """How full the disk was when somebody last looked."""
        self.may_lack_room = False
        """Whether somebody wrote to a disk that was nearly full, and was possibly stopped by it."""
        self.is_at_rest = False
        """Whether the last life ended with a clean stop, and nothing was done to the files since."""
        self.rules: FlushRules | None = None
        self.newest_told: dict[tuple[str, int], int] = {}
        """The newest offset of each queue that was reported, since the start or since the topic was deleted."""
        """When the log has to be flushed; None when something has come in between."""
        self.has_deleted = False
        """Whether a topic was deleted: the next `maintain` makes everything durable."""
        self.owes_checkpoint = False
        """Whether a checkpoint found no room: the next `maintain` writes it."""
        self.may_owe = False
        """The same, or perhaps it was somebody else who found no room."""
        self.has_failed = False
        """Whether the store could not make something durable: it promises nothing any more."""
        self.appended_to = 0
        self.last_read: tuple[object, seen.Readout] | None = None
        """When everything was read last, and what was found."""
        self.host = messages.HOST_IPV6 if self.setting.store_ipv6 else messages.HOST
        self._start(h.StartStore())

    # --- the steps --------------------------------------------------------------------------------------------

    def take(self, step: h.Step) -> None:
        """Takes one step, whatever comes of it."""
        if self.is_broken:
            return
        try:
            self._take(step)
            observing.note_progress(self)
        except SimulatedCrash:
            assert self.armed is not None
            self._crash(self.armed)
        except DiskError as error:
            if isinstance(error, DiskFailed) and isinstance(step, _FLUSHING):
                assert self.store is not None
                self.has_failed = True
                if self.store.accepts_puts:
                    self.see(seen.Failed(type(step).__name__, "a flush failed, and puts are accepted all the same"))
            # A full or failing disk may stop an awaited operation; nothing that was promised may depend on it.
            is_excused = bool(self.disk.happened) or isinstance(step, h.ExpireFile)  # which has a full disk of its own
            if not isinstance(step, _MAY_FAIL) or not is_excused:
                self._failed(step, error)
            elif isinstance(step, h.StopStore | h.RestartStore):
                self._crash(h.ProcessCrash())
        except Exception as error:  # an engine may be wrong in any way; every way is a finding
            self._failed(step, error)

    def finish(self) -> list[Finding]:
        """Ends the history: whatever was running is read, stopped, started and read again; then the oracles judge."""
        self.disk.cancel_faults()
        self.armed = None
        self.take(h.ReadEverything())
        self.take(h.StopStore())
        self.take(h.StartStore())
        self.take(h.Replicate())
        return judge(self.observations)

    def _take(self, step: h.Step) -> None:
        store = self.store
        match step:
            case h.AdvanceClock(by_ms):
                self.clock_was_set_back |= by_ms < 0
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
                    self.armed = step
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
                stepping.put_message(
                    self, store, messages.one(step, self.numbers, self.now_ms, room, self.host), early=step.early
                )
            case h.AppendBatch():
                stepping.put_message(
                    self, store, messages.batch(step, self.numbers, self.now_ms, self.host), early=False
                )
            case h.AppendIllegal():
                stepping.put_illegal(self, store, step)
            case h.FlushLog():
                self._flush(store)
            case h.DispatchMessage(count):
                stepping.dispatch(self, store, count)
            case h.Maintain(after_ms):
                self.now_ms += after_ms
                stepping.maintain(self, store, after_ms)
            case h.ExpireFile():
                stepping.clean(self, step, store)
            case h.CleanQueues():
                is_disturbed = self.meanwhile is not None
                drive(store.clean_queues())
                observing.look_for_expired_files(self, store, is_disturbed)
            case h.ServeMessage():
                self._serve(step, store)
            case h.ReadEverything():
                self.see(observing.readout(self, store, is_full=False))
            case h.DeleteTopic(topic):
                self._delete_topic(store, messages.TOPICS[topic % len(messages.TOPICS)])
            case h.StopStore():
                self._stop(store)
                self.disk = self.disk.after_process_crash()  # a new process, with nothing lost
            case h.RestartStore():
                self._stop(store)
                self.is_at_rest = False  # the start may die
                try:
                    self._started(store, drive(store.start(TimestampMs(self.now_ms))))
                except DiskError as error:  # the step may be stopped by a fault; a start here may not fail for it
                    if not self.disk.happened:
                        raise AssertionError(f"a second start failed: {error}") from error
                    raise
            case h.Meanwhile(flushes):
                self.meanwhile, self.flushes_left = step, flushes
            case h.Replicate():
                self._replicate(step, store)
            case h.SecondProcess():
                self._second_process()
            case h.SaveConfig(value):
                self._save_config(value)
            case h.FailFlush():
                self.see(seen.DiskFault())
                self.disk.inject(Fault.FLUSH_FAILS)
            case h.FillDisk(effects):
                self.see(seen.DiskFault())
                self.disk.inject(Fault.DISK_FULL, self.disk.operations + effects)
            case _:
                pass

    def _stop(self, store: MessageStore) -> None:
        self.meanwhile = None  # nothing is sent to a store that is being stopped
        try:
            drive(store.stop(TimestampMs(self.now_ms)))
        finally:
            self.store = None
            self.waiting.clear()
            self.observations.extend(leftovers(self.disk, "StopStore"))
        self.see(seen.StopStore())
        observing.note_checkpoint(self)
        observing.look_at_rest(self)

    def _replicate(self, step: h.Replicate, store: MessageStore) -> None:
        master = observing.readout(self, store, is_full=True)
        if master.log_fault or master.dispatched_to < master.log_max:
            return
        with_queues = not self.deleted_to
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

    async def _during_flush(self) -> None:
        """A flush is under way: what was planned for this moment happens."""
        step = self.meanwhile
        if step is None or self.store is None:
            return
        self.flushes_left -= 1
        if self.flushes_left >= 0:
            return
        self.meanwhile = replace(step, times=step.times - 1) if step.times > 1 else None
        self.may_lack_room |= self.disk.capacity_bytes != CAPACITY_BYTES
        if step.delete:
            self._delete_topic(self.store, messages.TOPICS[step.topic % len(messages.TOPICS)])
        message = h.AppendMessage(step.topic, step.queue, step.body_bytes, keys=step.keys)
        for _ in range(step.count):
            self.now_ms += step.after_ms
            room = self.setting.log_file_bytes - self.store.log_max % self.setting.log_file_bytes
            stepping.put_message(
                self, self.store, messages.one(message, self.numbers, self.now_ms, room, self.host), early=False
            )
        if step.dispatch:
            self.store.dispatch(ALL)
            self._serve(h.ServeMessage(step.topic, step.queue), self.store)

    def _delete_topic(self, store: MessageStore, name: str) -> None:
        end = int(store.log_max)
        self.deleted_to[name] = end
        self.has_deleted = True
        self.see(seen.DeleteTopic(name, end, store.dispatched_to))  # before: it may die half way
        store.delete_topic(name)
        self.newest_told = {key: offset for key, offset in self.newest_told.items() if key[0] != name}

    def _flush(self, store: MessageStore) -> None:
        covered = max((int(result.durable_at) for result, _ in self.waiting), default=0)
        drive(store.flush())
        observing.note_progress(self)
        stepping.answer(self, store, covered)

    def _serve(self, step: h.ServeMessage, store: MessageStore) -> None:
        self.observations.extend(serve(step, store, self.disk, self.setting))

    def _second_process(self) -> None:
        """A second store on the same directory is refused before it has changed anything."""
        before = self.disk.contents()
        meanwhile, self.meanwhile = self.meanwhile, None
        try:
            another = self.disk.another_process()
            drive(self.engine.open_store(another, self.setting).start(TimestampMs(self.now_ms)))
            self.see(seen.Failed("SecondProcess", "a store was started in a directory that is in use"))
        except StoreInUse:
            self.observations.extend(leftovers(another, "SecondProcess"))
        self.meanwhile = meanwhile
        if self.disk.contents() != before:
            self.see(seen.Failed("SecondProcess", "a store that was refused has changed files"))

    def _save_config(self, value: int) -> None:
        previous = read_text_file(self.disk, CONFIG)
        self.see(seen.SaveConfig(value))
        drive(replace_text_file(self.disk, CONFIG, str(value).encode()))
        self.see(seen.ConfigSaved(value))
        backup = read_text_file(self.disk, f"{CONFIG}.bak")
        if previous and previous != str(value).encode() and backup != previous:
            self.see(seen.Failed("SaveConfig", f"the backup holds {backup!r}, not {previous!r}"))

    # --- crashes and starts -----------------------------------------------------------------------------------

    def _crash(self, how: h.ProcessCrash | h.PowerLoss) -> None:
        if self.counter is not None:
            self.counter.fault(type(how).__name__)
        self.store = None
        self.armed = self.meanwhile = None
        self.waiting.clear()
        match how:
            case h.ProcessCrash():
                self.disk = self.disk.after_process_crash()
                self.see(seen.ProcessCrash(loses_unwritten=self.setting.transient_pool))
            case h.PowerLoss(survivors=survivors, harsh=harsh):
                self.disk = self.disk.after_power_loss(scripted(survivors, harshest if harsh else mildest))
                self.foreign = {path: data for path, data in self.foreign.items() if self.disk.exists(path)}
                self.see(seen.PowerLoss())

    def _start(self, step: h.StartStore) -> None:
        undisturbed = self._undisturbed(step)
        self.is_at_rest = False
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
                self.see(seen.Failed("StartStore", "a start has changed files, and they look cleanly stopped"))
        try:
            store = self._open_store()
            report = drive(store.start(TimestampMs(self.now_ms)))
        except Exception as error:
            self._cannot_start(error)
            return
        readout = self._started(store, report)
        if undisturbed is not None:
            self.see(seen.Recovered(undisturbed, readout))

    def _open_store(self) -> MessageStore:
        return self.engine.open_store(self.disk, self.setting, None if self.counter is None else self.counter.event)

    def _started(self, store: MessageStore, report: RecoveryReport) -> seen.Readout:
        self.store = store
        self.used_percent = 0
        self.newest_told = {}
        self.may_lack_room = False
        self.rules = FlushRules.since(self.now_ms, self.setting.flush_page_bytes)
        self.has_deleted = self.owes_checkpoint = self.may_owe = self.has_failed = False
        self.appended_to = 0
        self.see(seen.StartStore(report.was_clean, report.valid_to, report.records_dispatched, report.notes))
        worst = raw.worst_case(self.disk)
        if ABORT not in worst:
            self.see(seen.Failed("StartStore", "a power loss now would look like a clean stop"))
        differ = raw.differences(worst, self.disk.contents())
        if differ and not self.disk.happened:
            self.see(seen.Failed("StartStore", f"a start serves, and a power loss now would change {differ}"))
        config = read_text_file_or_backup(self.disk, CONFIG)
        self.see(seen.ConfigRead(int(config) if config is not None else -1))
        self.flushed_to = -1
        observing.note_progress(self)
        readout = observing.readout(self, store, is_full=True)
        self.see(readout)
        changed = sorted(path for path, data in self.foreign.items() if self.disk.contents().get(path) != data)
        if changed:
            self.see(seen.Failed("StartStore", f"files of somebody else were changed: {changed}"))
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
        return observing.readout(self, store, is_full=True)

    def _cannot_start(self, error: Exception) -> None:
        self.is_broken = True
        if isinstance(error, DamagedLog) and self.may_refuse:
            # Somebody said that lost bytes were durable: a checkpoint from the future, half of one, or no abort file
            # after a power loss. To refuse is a right answer.
            return
        self.see(seen.StartFailed(f"{type(error).__name__}: {error}"))

    def _damage(self, step: h.DamageAbort | h.DamageCheckpoint | h.DamageConfig | h.StrayFile | h.LoseDerived) -> None:
        if isinstance(step, h.DamageConfig):
            self._damage_config(step)
            return
        self.see(seen.Damaged(type(step).__name__))
        self.is_at_rest = False
        match step:
            case h.DamageAbort(present=True):
                self.disk.put_contents({ABORT: b""})
            case h.DamageAbort():
                self.may_refuse = True
                self.disk.take_away(ABORT)
            case h.DamageCheckpoint(how):
                damage.damage_checkpoint(self.disk, how, BEGIN_MS, self.now_ms)
                self.is_lied_to |= how == "ahead"
                self.may_refuse |= how in ("ahead", "torn")
            case h.StrayFile(where):
                path = damage.stray_file(self.disk, self.setting, where)
                if where in damage.FOREIGN:
                    assert path is not None
                    self.foreign[path] = self.disk.contents()[path]
                elif path is not None:
                    self.observations.extend(must_be_refused(path, self.disk, self.setting, self.engine, self.now_ms))
                    self.disk = self.disk.after_process_crash()
                    self.disk.take_away(path)
            case h.LoseDerived(what):
                damage.lose_derived(self.disk, what)
                self.foreign = {path: data for path, data in self.foreign.items() if self.disk.exists(path)}

    def _damage_config(self, step: h.DamageConfig) -> None:
        if not self.disk.exists(CONFIG):
            return
        self.disk.take_away(CONFIG)
        if step.how == "empty":
            self.disk.put_contents({CONFIG: b""})
        self.see(seen.ConfigLost())

    def _damage_record(self, step: h.DamageRecord) -> None:
        if self.is_at_rest:
            now_ms = TimestampMs(self.now_ms)
            self.observations.extend(start_damaged(step, self.disk.copy(), self.setting, self.engine, now_ms))

    # --- observing --------------------------------------------------------------------------------------------

    def see(self, observation: seen.Observation) -> None:
        self.observations.append(observation)

    def blame(self, step: str, sentences: Iterable[str]) -> None:
        """A step was not as it must be."""
        for sentence in sentences:
            self.see(seen.Failed(step, sentence))

    def _failed(self, step: h.Step, error: Exception) -> None:
        self.see(seen.Failed(type(step).__name__, f"{type(error).__name__}: {error}"))


@dataclass
class Run:
    """What came of a history."""

    violations: list[Finding]
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
    runner = Runner(history.setting, store_engine(engine), counter=told)
    for step in history.steps:
        runner.take(step)
        if told is not None:
            told.take(step, runner.disk)
    return Run(runner.finish(), runner.observations, told)
