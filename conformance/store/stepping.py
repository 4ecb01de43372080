"""Takes the steps of which one knows beforehand what they must do: puts, dispatch, maintenance, cleaning.

What a step did is gathered here, and judged in `judging` or, when that is later, by the oracles.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from conformance.oracles import store_events as seen
from conformance.store import history as h
from conformance.store import judging, messages, observing, raw, telling
from conformance.store.drive import ack, drive, plan, put
from conformance.store.flush_rules import not_durable, queues_with_full_pages
from conformance.store.observing import FULL_PERCENT
from refmq.model.ids import TimestampMs
from refmq.sim.disk import Fault
from refmq.store import MessageStore, PutResult, PutStatus

if TYPE_CHECKING:
    from conformance.store.runner import Runner

RESERVED_MS: Final = 72 * 3600 * 1000
DELETE_HOUR: Final = 4
CAPACITY_BYTES: Final = 1 << 40


def maintain(life: Runner, store: MessageStore, after_ms: int) -> None:
    flushed, dispatched, faults = store.flushed_to, store.dispatched_to, len(life.disk.happened)
    full_queues = queues_with_full_pages(life.rules, store, life.disk)
    is_disturbed = life.meanwhile is not None
    drive(store.maintain(TimestampMs(life.now_ms)))
    was_set_back, life.clock_was_set_back = life.clock_was_set_back, False
    if not store.accepts_puts or faults < len(life.disk.happened) or is_disturbed:
        life.rules = None  # the disk is full, or a flush has failed: it tries again when it can
    if not store.accepts_puts:
        is_full = faults < len(life.disk.happened) or life.used_percent > FULL_PERCENT
        has_failed = Fault.FLUSH_FAILS in life.disk.happened
        is_full |= store.dispatched_to < (store.flushed_to if life.setting.sync_flush else store.log_max)
        if life.owes_checkpoint and not (is_full or has_failed or is_disturbed):
            life.see(seen.Failed("maintain", "there is room again, and puts are refused"))
        # It had to make everything durable and found no room: the next round does it, whatever the time. With
        # somebody at work meanwhile nobody knows whom the full disk met.
        life.may_owe = faults < len(life.disk.happened) and not has_failed
        life.owes_checkpoint = life.may_owe and not is_disturbed
        return
    life.may_owe = False
    if not life.disk.happened and not is_disturbed:
        life.see(seen.DeletionsKept())
    look_at_log(life, store, flushed)
    if life.rules is not None and life.rules.by_queue_pages:
        life.blame("maintain", not_durable(full_queues, life.disk))
    if was_set_back or life.is_lied_to:
        return  # nobody knows how much time has passed, or what is durable
    is_thorough = life.rules is not None and life.rules.by_queues
    if is_thorough or life.owes_checkpoint:
        life.owes_checkpoint = False
        found = raw.checkpoint(life.disk, life.setting, life.deleted_to)
        behind = [offset for _, offset in found.missing_in_queues if offset < dispatched]
        is_half_indexed = bool(life.disk.happened) and store.dispatched_to < store.log_max
        sentences = judging.checkpointed(behind, found.queues_to, dispatched, is_half_indexed=is_half_indexed)
        life.blame("maintain", sentences)
        observing.look_for_expired_files(life, store, is_disturbed)


def look_at_log(life: Runner, store: MessageStore, flushed: int) -> None:
    """What a round did to the log, if the rules are known."""
    rules = life.rules
    if rules is None:
        return
    has_deleted, life.has_deleted = life.has_deleted, False
    is_sync = life.setting.sync_flush
    is_commit_due = not is_sync and life.setting.transient_pool and rules.commits(life.now_ms)
    written = (0, 0) if is_sync else (flushed, store.log_max)
    is_flush_due = rules.flushes(life.now_ms, *written, has_deleted=has_deleted)
    maintenance = judging.SeenMaintenance(
        flushed, store.flushed_to, store.log_max, life.appended_to, is_sync, is_flush_due, is_commit_due
    )
    life.blame("maintain", judging.maintained(maintenance))


def dispatch(life: Runner, store: MessageStore, count: int) -> None:
    """Whoever waits for messages hears of each one, in order."""
    begin, faults = store.dispatched_to, len(life.disk.happened)
    told = store.dispatch(count)
    life.may_lack_room = False
    bound = store.flushed_to if life.setting.sync_flush else store.log_max
    has_failed = Fault.FLUSH_FAILS in life.disk.happened
    is_full = life.may_owe or life.used_percent > FULL_PERCENT
    refuses_puts = not store.accepts_puts and not has_failed and not is_full
    is_disturbed = faults < len(life.disk.happened)
    done = judging.SeenDispatch(begin, store.dispatched_to, bound, len(told), is_disturbed, refuses_puts)
    life.blame("dispatch", judging.dispatched(done))
    life.blame("dispatch", telling.faults(store, life.setting, begin, told, count))
    life.blame("dispatch", telling.told_before(told, life.newest_told))


def put_illegal(life: Runner, store: MessageStore, step: h.AppendIllegal) -> None:
    message = messages.illegal(step, life.numbers, life.now_ms)
    before, accepts = store.log_max, store.accepts_puts
    now_ms = TimestampMs(life.now_ms)
    result = put(store, message, now_ms)
    expected = PutStatus.MESSAGE_ILLEGAL if accepts else PutStatus.SERVICE_NOT_AVAILABLE
    if result.status is not expected or store.log_max != before:
        life.see(seen.Failed("put", f"{result.status.name} for a message with {step.how}"))


def put_message(life: Runner, store: MessageStore, to_send: messages.ToSend, *, early: bool) -> None:
    life.numbers += len(to_send.sent)
    for sent in to_send.sent:
        life.see(sent)
    now_ms = TimestampMs(life.now_ms)
    accepts, faults = store.accepts_puts, len(life.disk.happened)
    place = messages.next_place(max(life.appended_to, int(store.log_max)), to_send.sent, life.setting.log_file_bytes)
    message = to_send.message
    is_legal = messages.is_legal(to_send, life.setting)
    planned = plan(store, message, now_ms)
    status = planned if isinstance(planned, PutStatus) else store.append(planned)
    if isinstance(planned, PutStatus) or not status.is_stored:
        for sent in to_send.sent:
            life.see(seen.PutRefused(sent.number, status.name))
        had_room = life.disk.capacity_bytes == CAPACITY_BYTES and faults == len(life.disk.happened)
        refusal = None if is_legal else messages.refusal(to_send, life.setting)
        life.blame("put", judging.refused(judging.SeenPut(status, is_legal, refusal, accepts, had_room)))
        return
    result = PutResult.of(status, planned)
    physical_offset, queue_offset = int(result.physical_offset), int(result.queue_offset)
    for sent in to_send.sent:
        size = messages.record_bytes(sent)
        life.see(seen.Stored(sent.number, physical_offset, size, queue_offset, result.store_timestamp_ms))
        physical_offset += size
        queue_offset += 1
    first = to_send.sent[0]
    expected = (first.topic, first.queue_id, len(to_send.sent), physical_offset, messages.ids(result, to_send.sent))
    at = judging.SeenPlace(
        expected_at=place,
        physical_offset=int(result.physical_offset),
        is_certain=not life.disk.happened,
        expected=expected,
        found=(result.topic, result.queue_id, result.count, result.durable_at, result.message_id),
        expected_bytes=physical_offset - result.physical_offset,
        size_bytes=result.size_bytes,
        misplaced=messages.misplaced(planned, to_send.sent),
    )
    life.blame("put", judging.stored(at, is_legal=is_legal))
    life.appended_to = max(life.appended_to, int(result.durable_at))
    life.waiting.append((result, tuple(sent.number for sent in to_send.sent)))
    if early or not life.setting.sync_flush:
        answer(life, store)


def answer(life: Runner, store: MessageStore, covered: int = 0) -> None:
    """Every waiting producer is told what may be told. `covered` is how far a flush had to go, if there was one."""
    for result, numbers in life.waiting:
        status = ack(store, result, sync_flush=life.setting.sync_flush)
        is_safe = not life.setting.sync_flush or result.durable_at <= max(covered, store.flushed_to)
        what = f"{result}, flushed to {store.flushed_to}"
        told = judging.SeenAnswer(status, what, is_safe, store.accepts_puts, life.has_failed)
        life.blame("AckPut", judging.answered(told))
        if status is PutStatus.PUT_OK:
            for number in numbers:
                life.see(seen.AckPut(number, promises_power=life.setting.sync_flush))
    life.waiting.clear()


def clean(life: Runner, step: h.ExpireFile, store: MessageStore) -> None:
    life.now_ms += step.after_ms
    used = life.disk.usage("").total_bytes - life.disk.usage("").free_bytes
    life.disk.capacity_bytes = max(1, -(-used * 100 // step.used_percent))
    before = tuple(
        (int(name), int(life.disk.info(f"commitlog/{name}").modified_ms)) for name in life.disk.list("commitlog")
    )
    due = step.hour in (DELETE_HOUR, None) or step.used_percent > 75
    has_failed = Fault.FLUSH_FAILS in life.disk.happened
    safe_before = observing.safe_to(life, store)
    removed, is_disturbed = -1, life.meanwhile is not None
    life.used_percent = step.used_percent
    try:
        removed = drive(store.clean(TimestampMs(life.now_ms), step.hour))
        if store.accepts_puts and step.used_percent > FULL_PERCENT:
            life.see(seen.Failed("clean", f"puts are accepted on a disk that is {step.used_percent} % full"))
        if removed > 0:
            observing.look_for_expired_files(life, store, is_disturbed)
    finally:
        life.disk.capacity_bytes = CAPACITY_BYTES
        life.see(
            seen.ExpireFile(
                files=before,
                begins_after=observing.log_begins(life, before[-1][0] if before else 0) if removed >= 0 else (),
                removed_count=removed,
                now_ms=life.now_ms,
                reserved_ms=RESERVED_MS,
                forced=step.used_percent > 85,
                allowed=due,
                required=due and not has_failed,
                files_max=life.setting.files_max,
                interrupted=removed < 0,
                safe_to=observing.safe_to(life, store),
                safe_before=safe_before,
            )
        )
