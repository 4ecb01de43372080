"""A put from its plan to its acknowledgement: AppendMessage, AckPut and TimeoutPut.

    async flush     Append, Dispatch, Reply                one step
    sync flush      Append, Flush, Wait    ... Durable ... Reply, Dispatch

With sync flush the waiting puts share a flush (group commit): while one is under way the next puts gather behind it,
and one `Durable` acknowledges all that it covers.
"""

from __future__ import annotations

from dataclasses import replace

from refmq.model.ids import PhysicalOffset
from refmq.model.step import EventFields
from refmq.plane import answers
from refmq.plane.ack import Put, ack_put_enabled, ack_put_events, timeout_status
from refmq.plane.effects import (
    Append,
    CountPut,
    CountRefusedSend,
    CountSend,
    Dispatch,
    Effect,
    Flush,
    Reply,
    Tell,
    Wait,
)
from refmq.plane.inputs import Frame, Moment, OwnPut
from refmq.plane.state import PlaneState, PlaneStep
from refmq.store.api import StoreReader
from refmq.store.config import FlushMode
from refmq.store.values import PutResult, PutStatus

# AppendMessage -------------------------------------------------------------------------------------------------------


def put_own(state: PlaneState, store: StoreReader, own: OwnPut, now: Moment) -> PlaneStep:
    """A message of the control plane. Its topic and its place were decided there."""
    plan = store.plan_message(own.message, now.wall_ms)
    if isinstance(plan, PutStatus):
        return PlaneStep(state, (Tell(own.ticket, PutResult(plan)),))
    assert plan.count == 1, "a message has one record"
    return append_message(state, Put(plan, own.ticket, plan.queue_id, now.uptime_ms), now, waits=own.waits)


def append_message(state: PlaneState, put: Put, now: Moment, *, waits: bool) -> PlaneStep:
    """Writes what was planned, and acknowledges it as soon as this mode allows it."""
    assert put.plan.count > 0, "a plan has a record"
    assert put.begun_ms <= now.uptime_ms, "the uptime never goes back"
    is_sync = waits_for_flush(state)
    if not is_sync and state.replicas.wanted == 0:
        effects, events = acknowledged(state, put, PutStatus.PUT_OK, now)
        return PlaneStep(state, (Append(put), Dispatch(), *effects), events)
    follows: Effect = Flush() if is_sync else Dispatch()
    if not waits:
        # The producer does not care: it is answered, but nothing is acknowledged.
        return PlaneStep(state, (Append(put), follows, *told(state, put, PutStatus.PUT_OK, now)), put.also)
    # Next
    after = replace(state, puts=state.puts.append(put))
    if not isinstance(put.asker, Frame):
        return PlaneStep(after, (Append(put), follows))
    after = replace(after, flow=after.flow.begin(put.asker.command.code, put.asker.number, now.uptime_ms))
    # Effects
    return PlaneStep(after, (Append(put), follows, Wait(put.asker)))


def append_failed(state: PlaneState, store: StoreReader, put: Put, status: PutStatus) -> PlaneStep:
    """The disk refused an append. The step that wanted it did not happen; this one answers instead."""
    assert not status.is_stored
    if isinstance(put.asker, Frame):
        refusal = answers.store_refusal(state.snapshot, store, status)
        reply = Reply(put.asker, answers.not_sent(state.snapshot, put.asker.command, refusal))
        return PlaneStep(state, (CountRefusedSend(), reply))
    return PlaneStep(state, () if put.asker is None else (Tell(put.asker, PutResult(status)),))


# AckPut, TimeoutPut --------------------------------------------------------------------------------------------------


def waits_for_flush(state: PlaneState) -> bool:
    return state.snapshot.store_config.flush_mode is FlushMode.SYNC


def ack_puts(state: PlaneState, flushed_to: PhysicalOffset, now: Moment) -> PlaneStep:
    """Acknowledges every put that has become safe, in the order of the log."""
    flushed = flushed_to if waits_for_flush(state) else None
    replicated = state.replicas.replicated_to()
    effects: list[Effect] = []
    events: list[EventFields] = []
    while (put := state.puts.head) is not None and ack_put_enabled(put.plan, flushed, replicated):
        state = _without_head(state, put)
        more, traced = acknowledged(state, put, PutStatus.PUT_OK, now)
        effects += more
        events += traced
    return PlaneStep(state, tuple(effects), tuple(events))


def timeout_puts(state: PlaneState, flushed_to: PhysicalOffset, now: Moment) -> PlaneStep:
    """Answers the puts that have waited too long for their flush or their slave. They stay in the log.

    One that has become safe although nobody has said so yet is not called late.
    """
    limit_ms = state.snapshot.config.sync_flush_timeout
    flushed, replicated = flushed_to if waits_for_flush(state) else None, state.replicas.replicated_to()
    effects: list[Effect] = []
    events: list[EventFields] = []
    while (put := state.puts.head) is not None and now.uptime_ms - put.begun_ms >= limit_ms:
        state = _without_head(state, put)
        is_safe = ack_put_enabled(put.plan, flushed, replicated)
        status = PutStatus.PUT_OK if is_safe else timeout_status(put.plan, flushed)
        more, traced = acknowledged(state, put, status, now)
        effects += more
        events += traced
    return PlaneStep(state, tuple(effects), tuple(events))


def give_up(state: PlaneState, now: Moment) -> PlaneStep:
    """After a failed flush nobody waits for a better one: everybody is told that the disk was too slow."""
    effects: list[Effect] = []
    events: list[EventFields] = []
    while (put := state.puts.head) is not None:
        state = _without_head(state, put)
        more, traced = acknowledged(state, put, PutStatus.FLUSH_DISK_TIMEOUT, now)
        effects += more
        events += traced
    assert not len(state.puts), "nobody waits any more"
    return PlaneStep(state, tuple(effects), tuple(events))


def acknowledged(
    state: PlaneState, put: Put, status: PutStatus, now: Moment
) -> tuple[tuple[Effect, ...], tuple[EventFields, ...]]:
    """The effects and events of one acknowledgement."""
    return told(state, put, status, now), (*ack_put_events(put.plan, status), *put.also)


def told(state: PlaneState, put: Put, status: PutStatus, now: Moment) -> tuple[Effect, ...]:
    """Whoever put the message learns where it is."""
    plan, took_ms = put.plan, now.uptime_ms - put.begun_ms
    assert took_ms >= 0, "the uptime never goes back"
    if isinstance(put.asker, Frame):
        answer = answers.sent(state.snapshot, put.asker.command, plan, put.queue_id, status)
        return CountSend(plan.topic, plan.count, plan.size_bytes, took_ms), Reply(put.asker, answer)
    counted = CountPut(took_ms)
    return (counted,) if put.asker is None else (counted, Tell(put.asker, PutResult.of(status, plan)))


def _without_head(state: PlaneState, put: Put) -> PlaneState:
    assert state.puts.head is put, "acknowledgements leave in the order of the log"
    state = replace(state, puts=state.puts.without_head())
    if not isinstance(put.asker, Frame):
        return state
    return replace(state, flow=state.flow.end(put.asker.command.code, put.asker.number))
