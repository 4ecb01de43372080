"""The machine as a whole: every request is answered once, and nothing is acknowledged that a crash could take back."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from refmq.errors import RefmqError, UsageError
from refmq.filter.registry import FilterRegistry
from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import PhysicalOffset, QueueOffset
from refmq.model.step import Event
from refmq.plane import PlaneState, PlaneStep, ack, hold, pull, puts, send, serve
from refmq.plane.effects import HandOver, Park, Reply, SetFilters, Wait, WakeMore
from refmq.plane.inputs import Arrived, Closed, Commit, Deferred, Done, Drain, Frame, Install, SetOffsets, Tick
from refmq.plane.offsets import OffsetTable
from refmq.plane.pull import WOKEN_AT_ONCE
from refmq.protocol.bodies.config import TopicConfig
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.headers.pull import PullSysFlag
from refmq.store import StoreConfig
from refmq.store.values import PutStatus
from tests.plane.runner import SMALL, SYNC, Runner, pull_command, running, send_command, snapshot

SUSPEND = PullSysFlag.SUBSCRIPTION | PullSysFlag.SUSPEND


def test_a_request_that_is_not_of_the_hot_path_is_handed_over() -> None:
    runner = running()
    frame = runner.frame(request(RequestCode.HEART_BEAT))
    assert runner.outcome(frame).effects == (HandOver(frame),)


def test_a_request_that_makes_no_sense_is_answered_and_changes_nothing() -> None:
    runner = running()
    frame = runner.frame(request(RequestCode.SEND_MESSAGE, {"topic": "T"}))
    outcome = runner.outcome(frame)
    (reply,) = outcome.effects
    assert isinstance(reply, Reply) and reply.command.code == ResponseCode.SYSTEM_ERROR
    assert outcome.state is runner.state


@pytest.mark.parametrize("code", [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE])
def test_the_vip_port_serves_no_pulls(code: RequestCode) -> None:
    runner = running()
    frame = runner.frame(replace(pull_command(), code=code), vip=True)
    runner.feed(frame)
    assert runner.codes(frame) == [ResponseCode.REQUEST_CODE_NOT_SUPPORTED]


def test_the_vip_port_serves_sends() -> None:
    runner = running()
    frame = runner.frame(send_command(), vip=True)
    runner.feed(frame)
    assert runner.codes(frame) == [ResponseCode.SUCCESS]


def test_what_waited_too_long_for_its_turn_is_refused() -> None:
    runner = running()
    frame = runner.frame(send_command())._replace(waited_ms=200)
    runner.feed(frame)
    assert runner.codes(frame) == [ResponseCode.SYSTEM_BUSY]


def test_what_the_control_plane_takes_its_time_for_counts_as_being_served() -> None:
    runner = running(BrokerConfig(heartbeat_thread_pool_queue_capacity=1))
    first, second = (runner.frame(request(RequestCode.HEART_BEAT)) for _ in range(2))
    runner.feed(Deferred(first))
    runner.feed(second)
    assert runner.codes(second) == [ResponseCode.SYSTEM_BUSY]
    runner.feed(Done(first))
    assert runner.outcome(second).effects == (HandOver(second),)


def test_an_installed_snapshot_is_what_the_next_request_is_checked_against() -> None:
    runner = running()
    readonly = TopicConfig(topic_name="T", read_queue_nums=4, write_queue_nums=4, perm=2)
    runner.feed(Install(snapshot(topics=[readonly])))
    frame = runner.pull()
    assert runner.codes(frame) == [ResponseCode.NO_PERMISSION]


def test_the_store_is_told_of_filters_only_when_they_change() -> None:
    off, on = BrokerConfig(), BrokerConfig(enable_calc_filter_bit_map=True)
    runner = running(off)
    tables = snapshot(on)
    assert runner.outcome(Install(tables)).effects == (SetFilters(tables.filters.by_topic),)
    runner.feed(Install(tables))
    assert runner.outcome(Install(replace(tables, topics=snapshot().topics))).effects == ()
    changed = replace(tables, filters=FilterRegistry(tables.filters.bloom))
    assert runner.outcome(Install(changed)).effects == (SetFilters(changed.filters.by_topic),)
    assert runner.outcome(Install(snapshot(off))).effects == (SetFilters(None),)


def test_offsets_are_the_planes_own() -> None:
    runner = running()
    runner.feed(Commit("g", "T", 1, QueueOffset(7)))
    assert runner.state.offsets.get("T", "g", 1) == 7
    assert runner.events == [Event("CommitOffset", "g", "T", 1, a=-1, b=7)]
    runner.feed(SetOffsets(OffsetTable()))
    assert runner.state.offsets.get("T", "g", 1) is None


def test_a_stop_answers_the_pulls_that_wait() -> None:
    runner = running()
    frame = runner.pull(sys_flag=SUSPEND)
    assert runner.codes(frame) == []
    runner.feed(Drain())
    assert runner.codes(frame) == [ResponseCode.PULL_NOT_FOUND]
    assert len(runner.state.hold) == 0


# --- histories -------------------------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "impatient", "pull", "wait", "flush", "dispatch", "tick", "close", "fail", "crash"]),
        st.integers(1, 3),
        st.integers(0, 1),
    ),
    max_size=25,
)


@dataclass
class History:
    """Plays steps on a plane and remembers what each frame is owed."""

    store_config: StoreConfig
    runner: Runner = field(init=False)
    mistakes: list[str] = field(default_factory=list)
    owed: dict[int, str] = field(default_factory=dict)
    closed: set[int] = field(default_factory=set)
    """Frames whose connection is gone."""

    def __post_init__(self) -> None:
        self.runner = running(store_config=self.store_config)

    def play(self, steps: list[tuple[str, int, int]]) -> list[str]:
        for what, connection, queue_id in steps:
            if what == "crash":
                break
            self.take(what, connection, queue_id)
            self.look(what)
        return self.mistakes

    def take(self, what: str, connection: int, queue_id: int) -> None:
        runner = self.runner
        match what:
            case "send" | "impatient":
                properties = {"WAIT": "false"} if what == "impatient" else {}
                frame = runner.send(queue_id=queue_id, properties=properties, connection=connection)
                self.owed[frame.number] = "send"
            case "pull" | "wait":
                end = runner.store.max_offset("T", queue_id)
                flags = SUSPEND if what == "wait" else PullSysFlag.SUBSCRIPTION
                frame = runner.pull(end, queue_id=queue_id, sys_flag=flags, connection=connection)
                self.owed[frame.number] = what
            case "flush":
                runner.flush()
            case "dispatch":
                runner.dispatch()
            case "tick":
                runner.now_ms += 3_000
                runner.feed(Tick())
            case "close":
                self.closed |= {held.frame.number for held in runner.state.hold.of_connection(connection)}
                runner.feed(Closed(connection))
            case _:
                runner.refuse_appends = None if runner.refuse_appends else PutStatus.CREATE_MAPEDFILE_FAILED

    def look(self, what: str) -> None:
        """What must hold after every step."""
        runner = self.runner
        waiting = {put.asker.number for put in runner.state.puts.puts.values() if isinstance(put.asker, Frame)}
        held = {held.frame.number for held in runner.state.hold.every()}
        for number, kind in self.owed.items():
            answers = len(runner.replies.get(number, []))
            still = (number in waiting) + (number in held)
            if answers + still != (0 if number in self.closed else 1):
                self.mistakes.append(f"{what}: a {kind} has {answers} answers and waits in {still} places")
        acked = [event for event in runner.events if event.action == "AckPut"]
        for event in acked:
            is_durable = event.a < runner.store.flushed_to
            if self.store_config is SYNC and event.d == PutStatus.PUT_OK and not is_durable:
                self.mistakes.append(f"{what}: acknowledged at {event.a}, durable to {runner.store.flushed_to}")
        if [event.a for event in acked] != sorted(event.a for event in acked):
            self.mistakes.append(f"{what}: acknowledgements out of the order of the log")
        if any(runner.store.max_offset("T", p.queue_id) > p.queue_offset for p in runner.state.hold.every()):
            self.mistakes.append(f"{what}: a pull waits for a message that is there")


@pytest.mark.parametrize("store_config", [SMALL, SYNC], ids=["async flush", "sync flush"])
@given(steps=STEPS)
def test_every_request_is_answered_once_and_nothing_is_acknowledged_early(
    store_config: StoreConfig, steps: list[tuple[str, int, int]]
) -> None:
    assert History(store_config).play(steps) == []


def ack_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(puts, "ack_put_enabled", lambda put, flushed_to, replicated_to: True)
    original = puts.append_message

    def eager(state: PlaneState, put: ack.Put, now: Any, *, waits: bool) -> PlaneStep:
        step = original(state, put, now, waits=waits)
        acked = puts.ack_puts(step.state, PhysicalOffset(0), now)
        return PlaneStep(acked.state, (*step.effects, *acked.effects), (*step.events, *acked.events))

    patch.setattr(send, "append_message", eager)


def answer_twice(patch: pytest.MonkeyPatch) -> None:
    twice = lambda state, store, given, now: doubled(pull.wake_arrived(state, store, given, now))  # noqa: E731
    patch.setattr(serve, "wake_arrived", twice)


def doubled(step: PlaneStep) -> PlaneStep:
    return step._replace(effects=tuple(effect for effect in step.effects for _ in range(2)))


def forget_the_parked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(hold.Hold, "park", lambda self, pull: self)


def wake_nobody(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(serve, "wake_arrived", lambda state, store, arrived, now: PlaneStep(state))


def keep_the_state_of_a_failed_append(patch: pytest.MonkeyPatch) -> None:
    """The put waits although it was refused: it is answered now, and again after the next flush."""
    original = puts.append_message

    def hasty(state: PlaneState, put: ack.Put, now: Any, *, waits: bool) -> PlaneStep:
        step = original(state, put, now, waits=waits)
        refused = Reply(put.asker, send_command()) if isinstance(put.asker, Frame) else None
        waits_now = any(isinstance(effect, Wait) for effect in step.effects)
        return step._replace(effects=(*step.effects, refused)) if refused is not None and waits_now else step

    patch.setattr(send, "append_message", hasty)


MUTANTS = {
    "acknowledged without a flush": (SYNC, ack_at_once),
    "answered twice": (SMALL, answer_twice),
    "a parked pull is forgotten": (SMALL, forget_the_parked),
    "an arrival wakes nobody": (SMALL, wake_nobody),
    "a refused put waits as well": (SYNC, keep_the_state_of_a_failed_append),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_the_histories_catch_their_mutants(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store_config, put_in = MUTANTS[mutant]
    put_in(monkeypatch)

    @settings(database=None, max_examples=3_000, phases=[Phase.generate], deadline=None)
    @given(STEPS)
    def property_(steps: list[tuple[str, int, int]]) -> None:
        assert History(store_config).play(steps) == []

    with pytest.raises(AssertionError):
        property_()


def test_park_is_told_apart_from_waiting() -> None:
    runner = running(store_config=SYNC)
    runner.send()
    runner.pull(sys_flag=SUSPEND)
    assert [type(effect) for effect in runner.done if isinstance(effect, Wait | Park)] == [Wait, Park]


def test_thousands_that_wait_are_answered_a_few_at_a_time() -> None:
    runner = running()
    frames = [runner.pull(sys_flag=SUSPEND) for _ in range(3 * WOKEN_AT_ONCE)]
    runner.send()
    messages = runner.store.dispatch(10)
    outcome = runner.outcome(Arrived(messages))
    answered = [effect.frame for effect in outcome.effects if isinstance(effect, Reply)]
    assert answered == frames[:WOKEN_AT_ONCE]
    assert outcome.effects[-1] == WakeMore()
    assert len(outcome.state.woken) == 2 * WOKEN_AT_ONCE
    runner.feed(Arrived(messages))  # the runner takes every step there is
    assert [runner.codes(frame) for frame in frames] == [[ResponseCode.SUCCESS]] * len(frames)
    assert runner.state.woken == ()


def test_a_woken_pull_of_a_connection_that_is_gone_is_forgotten() -> None:
    runner = running()
    for number in range(2 * WOKEN_AT_ONCE):
        runner.pull(sys_flag=SUSPEND, connection=1 + number // WOKEN_AT_ONCE)
    runner.send()
    woken = runner.outcome(Arrived(runner.store.dispatch(10))).state
    assert len(woken.woken) == WOKEN_AT_ONCE
    assert serve.step(woken, runner.store, Closed(2), runner.now).state.woken == ()


class Doorkeeper:
    """Refuses, or fails."""

    def __init__(self, error: RefmqError | None = None) -> None:
        self.error = error

    def refusal(self, command: RemotingCommand, peer: str) -> str | None:
        if self.error is not None:
            raise self.error
        return "not you"


@pytest.mark.parametrize(("error", "remark"), [(None, "not you"), (UsageError("a mistake"), "a mistake")])
@pytest.mark.parametrize("code", [310, 11, 14, 15, 28, 99_999])
def test_whom_access_control_refuses_or_fails_on_is_not_served(
    error: RefmqError | None, remark: str, code: int
) -> None:
    runner = running(BrokerConfig(acl_enable=True))
    runner.state = replace(runner.state, snapshot=replace(runner.state.snapshot, access=Doorkeeper(error)))
    outcome = runner.outcome(runner.frame(request(code)))
    (reply,) = outcome.effects
    assert isinstance(reply, Reply)
    assert (reply.command.code, reply.command.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert outcome.state is runner.state
