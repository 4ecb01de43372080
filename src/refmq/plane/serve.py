"""From an input to a step: everything that can happen to the hot path of a broker.

    from refmq.plane import PlaneState, step
    outcome = step(state, store, Frame(...), now)      # nothing has happened yet
    ...                                                 # perform outcome.effects, in order
    state = outcome.state

`store` is read here and never written: a pull is a function of what can be read, a send plans where its message will
stand. All that changes anything is in the effects. Whoever drives a plane (`refmq.net.engine`, a test, the C engine's
loop) performs them in order, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias, assert_never

from refmq.errors import RefmqError
from refmq.plane import puts
from refmq.plane.effects import Dispatch, HandOver, Reply, SetFilters
from refmq.plane.flow import busy
from refmq.plane.hold import HELD_MAX
from refmq.plane.inputs import (
    Arrived,
    Closed,
    Commit,
    Deferred,
    Done,
    Drain,
    Durable,
    FlushFailed,
    Frame,
    Input,
    Install,
    Moment,
    NextWoken,
    OwnPut,
    Replicated,
    SetOffsets,
    Tick,
)
from refmq.plane.offset_requests import commit, serve_query_offset, serve_update_offset
from refmq.plane.pull import WOKEN_AT_ONCE, answer_woken, serve_pull, wake, wake_arrived, wake_due
from refmq.plane.replicate import lose_slave, master_read_report
from refmq.plane.send import serve_send
from refmq.plane.state import PlaneState, PlaneStep
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import response
from refmq.store.api import StoreReader

Server: TypeAlias = Callable[[PlaneState, StoreReader, Frame, Moment], PlaneStep]

SERVERS: Final[dict[int, Server]] = {
    RequestCode.SEND_MESSAGE: serve_send,
    RequestCode.SEND_MESSAGE_V2: serve_send,
    RequestCode.SEND_BATCH_MESSAGE: serve_send,
    RequestCode.PULL_MESSAGE: serve_pull,
    RequestCode.LITE_PULL_MESSAGE: serve_pull,
    RequestCode.UPDATE_CONSUMER_OFFSET: serve_update_offset,
    RequestCode.QUERY_CONSUMER_OFFSET: serve_query_offset,
}
"""The requests of the hot path; all others are the control plane's."""

NOT_ON_THE_VIP_PORT: Final = frozenset({RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE})


def step(state: PlaneState, store: StoreReader, given: Input, now: Moment) -> PlaneStep:
    """The step of any input."""
    match given:
        case Frame():
            return serve_frame(state, store, given, now)
        case OwnPut():
            return puts.put_own(state, store, given, now)
        case Arrived():
            return wake_arrived(state, store, given, now)
        case Durable():
            acked = puts.ack_puts(state, given.flushed_to, now)
            return acked._replace(effects=(*acked.effects, Dispatch()))
        case FlushFailed():
            return puts.give_up(state, now)
        case Replicated():
            replicas = master_read_report(state.replicas, given.slave, given.to, store.log_max)
            return puts.ack_puts(replace(state, replicas=replicas), store.flushed_to, now)
        case Tick():
            return tick(state, store, now)
        case Install():
            return install(state, given)
        case Commit():
            return commit(state, given)
        case SetOffsets():
            return PlaneStep(replace(state, offsets=given.offsets))
        case Closed():
            return forget_connection(state, given)
        case Deferred():
            code, number = given.frame.command.code, given.frame.number
            return PlaneStep(replace(state, flow=state.flow.begin(code, number, now.uptime_ms)))
        case Done():
            return PlaneStep(replace(state, flow=state.flow.end(given.frame.command.code, given.frame.number)))
        case Drain():
            return wake(state, store, state.hold.every(), now, at_once_max=HELD_MAX)
        case NextWoken():
            return answer_woken(state, store, now, WOKEN_AT_ONCE)
        case _:
            assert_never(given)


def serve_frame(state: PlaneState, store: StoreReader, frame: Frame, now: Moment) -> PlaneStep:
    """The step of any request. One that makes no sense is answered with code 1 and changes nothing."""
    code = frame.command.code
    if frame.on_vip_port and code in NOT_ON_THE_VIP_PORT:
        return refuse(state, frame, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f" request type {code} not supported")
    too_busy = busy(state.flow, state.snapshot.config, code, frame.waited_ms)
    if too_busy is not None:
        return refuse(state, frame, ResponseCode.SYSTEM_BUSY, too_busy)
    try:
        denied = state.snapshot.refusal(frame.command, frame.peer)
        if denied is not None:
            return refuse(state, frame, ResponseCode.SYSTEM_ERROR, denied)
        server = SERVERS.get(code)
        if server is None:
            return PlaneStep(state, (HandOver(frame),))
        return server(state, store, frame, now)
    except RefmqError as error:
        return refuse(state, frame, ResponseCode.SYSTEM_ERROR, str(error))


def install(state: PlaneState, given: Install) -> PlaneStep:
    """The control plane's tables have changed."""
    before, after = state.snapshot, given.snapshot
    was_on, is_on = (s.config.enable_calc_filter_bit_map for s in (before, after))
    changed = was_on != is_on or (is_on and before.filters is not after.filters)
    effects = (SetFilters(after.filters.by_topic if is_on else None),) if changed else ()
    return PlaneStep(replace(state, snapshot=after), effects)


def refuse(state: PlaneState, frame: Frame, code: ResponseCode, remark: str) -> PlaneStep:
    assert code is not ResponseCode.SUCCESS
    return PlaneStep(state, (Reply(frame, response(frame.command, code, remark=remark)),))


def tick(state: PlaneState, store: StoreReader, now: Moment) -> PlaneStep:
    """What is due by the clock: puts that waited too long, pulls whose time is up."""
    late = puts.timeout_puts(state, store.flushed_to, now)
    woken = wake_due(late.state, store, now)
    return PlaneStep(woken.state, (*late.effects, *woken.effects), (*late.events, *woken.events))


def forget_connection(state: PlaneState, closed: Closed) -> PlaneStep:
    """A connection is gone: its pulls wait no more. Its puts go on; what is in the log stays there."""
    pulls = state.hold.of_connection(closed.connection)
    assert all(pull.frame.connection == closed.connection for pull in pulls), "others go on waiting"
    replicas = lose_slave(state.replicas, closed.connection)
    woken = tuple(pull for pull in state.woken if pull.frame.connection != closed.connection)
    return PlaneStep(replace(state, hold=state.hold.without(pulls), woken=woken, replicas=replicas))
