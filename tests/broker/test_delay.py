"""Delayed messages: never early, never passed undelivered, over restarts and power loss."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from refmq.broker import delay
from refmq.broker.delay import DelayService
from refmq.model.ids import PhysicalOffset, QueueOffset
from refmq.protocol.bodies.offsets import DelayOffsets
from refmq.protocol.record import decode_properties
from refmq.store.delay import DelayLevels
from refmq.store.values import PutResult, PutStatus, QueueUnit
from tests.broker.harness import SMALL, Harness, run

LEVELS = DelayLevels.parse("1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h")


def deliver(world: Harness) -> int:
    """Delivers everything that is due now; returns how many messages."""
    count = 0
    while turn := run(world.broker.delay.deliver_due(world.now_ms())).delivered:
        count += turn
    return count


def test_a_message_comes_at_its_time_and_not_before() -> None:
    world = Harness()
    world.send("T", b"x", queue=2, properties={"DELAY": "2", "TAGS": "a"}, flag=3)
    world.now += 4_999
    assert deliver(world) == 0
    world.now += 1
    assert deliver(world) == 1
    (record,) = world.records("T", 2)
    assert (record.body, record.flag) == (b"x", 3)
    assert decode_properties(record.properties)["DELAY"] == "2"  # kept, and not delayed again
    assert deliver(world) == 0


def test_the_next_due_time_is_that_of_the_earliest_message() -> None:
    world = Harness()
    world.send(properties={"DELAY": "5"})
    world.now += 10
    world.send(properties={"DELAY": "3"})
    turn = run(world.broker.delay.deliver_due(world.now_ms()))
    assert turn.next_due_ms == world.now + 10_000


def test_a_turn_that_ends_with_a_queue_file_asks_for_the_next_at_once() -> None:
    world = Harness(store_config=replace(SMALL, queue_file_bytes=20 * 10))
    for _ in range(13):
        world.send(properties={"DELAY": "1"})
    world.now += 1_000
    turn = run(world.broker.delay.deliver_due(world.now_ms()))
    assert (turn.delivered, turn.next_due_ms) == (10, world.now)
    turn = run(world.broker.delay.deliver_due(world.now_ms()))
    assert (turn.delivered, turn.next_due_ms) == (3, None)


def test_a_level_above_the_highest_is_the_highest() -> None:
    world = Harness()
    world.send(properties={"DELAY": "99"})
    world.now += 2 * 3_600_000 - 1
    assert deliver(world) == 0
    world.now += 1
    assert deliver(world) == 1


def test_a_clock_that_was_set_back_delays_no_longer_than_the_level() -> None:
    world = Harness()
    world.now += 3_600_000
    world.send(properties={"DELAY": "1"})
    world.now -= 3_600_000
    assert deliver(world) == 1


def test_a_message_that_the_store_does_not_take_is_tried_again_and_never_passed() -> None:
    world = Harness()
    world.send(properties={"DELAY": "1"})
    world.now += 1_000
    world.refuse_puts = PutStatus.SERVICE_NOT_AVAILABLE
    assert deliver(world) == 0
    turn = run(world.broker.delay.deliver_due(world.now_ms()))
    assert turn.next_due_ms == world.now + delay.RETRY_MS
    world.refuse_puts = None
    world.now += delay.RETRY_MS
    assert deliver(world) == 1


@pytest.mark.parametrize("what", [b"damaged", b"REAL_TOPIC", b"REAL_QID"])
def test_a_damaged_message_is_set_aside_and_the_later_ones_are_delivered(what: bytes) -> None:
    world = Harness()
    for body in (b"first", b"damaged", b"last"):
        world.send("T", body, properties={"DELAY": "1"})
    world.damage(world.disk.contents()["commitlog/00000000000000000000"].index(b"damaged"), what)
    world.now += 1_000
    deliver(world)
    assert [record.body for record in world.records("T")] == [b"first", b"last"]
    assert len(world.warnings) == 1
    assert world.broker.delay.cursors[1] == 3


def test_a_message_that_no_store_will_ever_take_is_set_aside() -> None:
    world = Harness()
    world.send("T", b"refused", properties={"DELAY": "1"})
    world.send("T", b"taken", properties={"DELAY": "1"})
    world.now += 1_000
    world.refuse_puts = PutStatus.MESSAGE_ILLEGAL
    assert deliver(world) > 0
    assert world.broker.delay.cursors[1] == 2
    assert len(world.warnings) == 2 and "MESSAGE_ILLEGAL" in world.warnings[0]


@pytest.mark.parametrize("stored", [50, -3, 0])
def test_a_cursor_outside_of_its_queue_is_moved_to_its_nearest_end(stored: int) -> None:
    world = Harness()
    world.send(properties={"DELAY": "1"})
    service = DelayService(world.engine, world, LEVELS, DelayOffsets(offset_table={1: stored}))
    assert service.cursors[1] == (1 if stored > 0 else 0)


def test_what_is_written_down_never_passes_a_copy_that_is_not_durable() -> None:
    world = Harness()
    world.send(properties={"DELAY": "1"})
    run(world.store.flush())
    world.now += 1_000
    deliver(world)
    assert world.broker.delay.cursors[1] == 1
    assert world.broker.delay.to_file().offset_table == {}
    run(world.store.flush())
    assert world.broker.delay.to_file().offset_table == {1: 1}


STEPS = st.lists(
    st.tuples(st.sampled_from(["send", "wait", "deliver", "flush", "restart"]), st.integers(1, 3)), max_size=25
)


def mistake(steps: list[tuple[str, int]]) -> str | None:
    """Plays a history and says what went wrong: a message that is missing, doubled without a restart, or early."""
    world = Harness()
    due: dict[bytes, int] = {}
    restarts = 0
    for what, level in steps:
        match what:
            case "send":
                body = str(len(due)).encode()
                due[body] = world.now + LEVELS.delay_ms(level)
                world.send("T", body, properties={"DELAY": str(level)})
            case "wait":
                world.now += 1_000 * level
            case "deliver":
                deliver(world)
            case "flush":
                run(world.store.flush())
            case _:
                restarts += 1
                world.broker.delay = DelayService(world.engine, world, LEVELS, world.broker.delay.to_file())
    world.now += 20_000
    deliver(world)
    arrived = world.records("T")
    if {record.body for record in arrived} != set(due):
        return "missing"
    if len(arrived) != len(due) and not restarts:
        return "doubled"
    return "early" if any(record.store_timestamp_ms < due[record.body] for record in arrived) else None


@given(STEPS)
def test_every_message_is_delivered_in_time_and_once_unless_a_restart_repeats_it(steps: list[tuple[str, int]]) -> None:
    assert mistake(steps) is None


@pytest.mark.parametrize("mutant", ["a due time too early", "a file ahead of the cursor", "a cursor that stays"])
def test_the_property_catches_its_mutants(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    match mutant:
        case "a due time too early":
            monkeypatch.setattr(DelayService, "_due_ms", lambda self, level, unit, now_ms: unit.tags_code - 1_000)
        case "a file ahead of the cursor":
            ahead = lambda self: DelayOffsets(offset_table={n: c + 1 for n, c in self.cursors.items()})  # noqa: E731
            monkeypatch.setattr(DelayService, "to_file", ahead)
        case _:
            honest = DelayService._pass

            def forgetful(self: DelayService, level: int, unit: QueueUnit, result: PutResult | None) -> None:
                if unit.queue_offset or len(self._not_durable) > 3:
                    honest(self, level, unit, result)
                else:  # the first message of a queue is delivered again and again, a few times
                    self._not_durable.append(delay.Delivered(level, QueueOffset(0), PhysicalOffset(2**40)))

            monkeypatch.setattr(DelayService, "_pass", forgetful)

    @settings(database=None, max_examples=500, phases=[Phase.generate])
    @given(STEPS)
    def property_(steps: list[tuple[str, int]]) -> None:
        assert mistake(steps) is None

    with pytest.raises(AssertionError):
        property_()
