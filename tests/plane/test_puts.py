"""Puts from their plan to their acknowledgement, in every mode."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refmq.model.broker_config import BrokerConfig
from refmq.model.ids import PhysicalOffset, TimestampMs
from refmq.plane import step
from refmq.plane.effects import Append, CountRefusedSend, CountSend, Dispatch, Flush, Reply, Wait
from refmq.plane.flow import Kind
from refmq.plane.inputs import FlushFailed, OwnPut, Replicated, Tick, Ticket
from refmq.plane.replicate import Replicas
from refmq.protocol.codes import ResponseCode
from refmq.store import StoreConfig
from refmq.store.values import MessageToStore, PutStatus
from tests.plane.runner import SMALL, START_MS, STORE_HOST, SYNC, Runner, running, send_command


def kinds(runner: Runner) -> list[type]:
    return [type(effect) for effect in runner.done]


def own(ticket: int = 9, *, waits: bool = True) -> OwnPut:
    message = MessageToStore("T", 1, b"own", b"", TimestampMs(START_MS), STORE_HOST, STORE_HOST)
    return OwnPut(Ticket(ticket), message, waits)


def test_with_async_flush_a_send_is_answered_in_one_step() -> None:
    runner = running()
    frame = runner.send()
    assert kinds(runner) == [Append, Dispatch, CountSend, Reply]
    assert runner.codes(frame) == [ResponseCode.SUCCESS]
    assert [event.action for event in runner.events] == ["AckPut"]


def test_with_sync_flush_the_answer_waits_for_its_flush() -> None:
    runner = running(store_config=SYNC)
    frame = runner.send()
    assert kinds(runner) == [Append, Flush, Wait]
    assert runner.codes(frame) == []
    assert runner.events == []
    assert runner.state.flow.size(Kind.SEND) == 1
    runner.flush()
    assert runner.codes(frame) == [ResponseCode.SUCCESS]
    assert [event.action for event in runner.events] == ["AckPut"]
    assert runner.wants_dispatch
    assert runner.state.flow.size(Kind.SEND) == 0


def test_one_flush_acknowledges_all_it_covers_in_the_order_of_the_log() -> None:
    runner = running(store_config=SYNC)
    frames = [runner.send(connection=number) for number in (3, 1, 2)]
    runner.flush()
    replies = [effect.frame.number for effect in runner.done if isinstance(effect, Reply)]
    assert replies == [frame.number for frame in frames]
    places = [event.a for event in runner.events]
    assert places == sorted(places) and len(places) == 3


def test_who_does_not_wait_is_answered_at_once_and_nothing_is_acknowledged() -> None:
    runner = running(store_config=SYNC)
    frame = runner.send(properties={"WAIT": "false"})
    assert runner.codes(frame) == [ResponseCode.SUCCESS]
    assert runner.wants_flush
    assert runner.events == []


def test_a_put_that_waits_too_long_is_answered_with_a_time_out() -> None:
    runner = running(BrokerConfig(sync_flush_timeout=5_000), SYNC)
    frame = runner.send()
    runner.now_ms += 4_999
    runner.feed(Tick())
    assert runner.codes(frame) == []
    runner.now_ms += 1
    runner.feed(Tick())
    assert runner.codes(frame) == [ResponseCode.FLUSH_DISK_TIMEOUT]
    assert [event.d for event in runner.events] == [PutStatus.FLUSH_DISK_TIMEOUT]
    runner.flush()
    assert runner.codes(frame) == [ResponseCode.FLUSH_DISK_TIMEOUT]


def test_what_became_durable_meanwhile_is_not_called_late() -> None:
    runner = running(store_config=SYNC)
    frame = runner.send()
    runner.store.parts.log.files.flushed = runner.store.parts.log.files.wrote  # the flush is done, nobody has said so
    runner.now_ms += 60_000
    runner.feed(Tick())
    assert runner.codes(frame) == [ResponseCode.SUCCESS]


def test_a_clock_that_is_set_back_makes_nobody_late() -> None:
    runner = running(store_config=SYNC)
    frame = runner.send()
    back = runner.now._replace(wall_ms=TimestampMs(0))
    assert step(runner.state, runner.store, Tick(), back).effects == ()
    assert runner.codes(frame) == []


def test_after_a_failed_flush_everybody_is_told() -> None:
    runner = running(store_config=SYNC)
    frames = [runner.send(), runner.send()]
    runner.feed(FlushFailed())
    assert [runner.codes(frame) for frame in frames] == [[ResponseCode.FLUSH_DISK_TIMEOUT]] * 2
    assert len(runner.state.puts) == 0


def test_an_append_that_fails_changes_nothing_and_is_answered() -> None:
    runner = running(store_config=SYNC)
    before = runner.state
    runner.refuse_appends = PutStatus.CREATE_MAPEDFILE_FAILED
    frame = runner.send()
    assert runner.codes(frame) == [ResponseCode.SYSTEM_ERROR]
    assert runner.state == before
    assert kinds(runner) == [CountRefusedSend, Reply]
    runner.feed(own())
    assert runner.told[Ticket(9)].status is PutStatus.CREATE_MAPEDFILE_FAILED


@pytest.mark.parametrize("waits", [True, False])
def test_a_put_of_the_control_plane_is_told_when_a_producer_would_be(waits: bool) -> None:
    runner = running(store_config=SYNC)
    runner.feed(own(waits=waits))
    assert (Ticket(9) in runner.told) is not waits
    runner.flush()
    assert runner.told[Ticket(9)].status is PutStatus.PUT_OK
    assert runner.state.flow.size(Kind.SEND) == 0


@pytest.mark.parametrize("store_config", [SMALL, SYNC], ids=["async flush", "sync flush"])
def test_with_a_wanted_slave_the_answer_waits_for_it_as_well(store_config: StoreConfig) -> None:
    runner = running(store_config=store_config)
    runner.state = replace(runner.state, replicas=Replicas(wanted=1))
    frame = runner.send()
    assert runner.codes(frame) == []
    runner.feed(Replicated(1, PhysicalOffset(runner.store.log_max)))
    assert runner.codes(frame) == ([] if store_config is SYNC else [ResponseCode.SUCCESS])
    runner.flush()
    assert runner.codes(frame) == [ResponseCode.SUCCESS]


def test_a_slave_that_is_late_is_blamed_when_the_disk_is_not() -> None:
    runner = running(store_config=SYNC)
    runner.state = replace(runner.state, replicas=Replicas(wanted=1))
    frame = runner.send()
    runner.flush()
    runner.now_ms += 60_000
    runner.feed(Tick())
    assert runner.codes(frame) == [ResponseCode.FLUSH_SLAVE_TIMEOUT]


def test_a_refused_plan_is_answered_without_an_append() -> None:
    runner = running()
    frame = runner.frame(send_command(body=bytes(5 << 20)))
    runner.feed(frame)
    assert runner.codes(frame) == [ResponseCode.MESSAGE_ILLEGAL]
    assert Append not in kinds(runner)
