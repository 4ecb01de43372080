"""Check rounds: who is asked, how often, and what is set aside."""

from __future__ import annotations

from refmq.broker.check_rounds import STEPS_AT_ONCE, check_times
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.names import TRANS_CHECK_MAX_TIME_TOPIC, TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC
from refmq.protocol.record import PROPERTIES_BYTES_MAX, decode_properties, decode_record
from refmq.store.values import MessageToStore
from tests.broker.halves import beat, checks, end, finals, send_half
from tests.broker.harness import Harness, run

OLD_MS = 6_001


def test_a_round_asks_about_what_is_old_and_undecided() -> None:
    world = Harness()
    beat(world)
    send_half(world)
    world.now += 5_999
    world.round()
    assert checks(world) == []
    world.now += 1
    world.round()
    ((header, command),) = checks(world)
    assert (header.msg_id, header.tran_state_table_offset) == ("k1", 1)
    asked = decode_record(command.body, check_crc=True)
    assert (asked.topic, asked.queue_id, asked.body) == ("T", 1, b"k1")
    assert check_times(decode_properties(asked.properties)) == 1
    end(world, (header.tran_state_table_offset, header.commit_log_offset))
    assert finals(world) == [b"k1"]
    world.now += 60_000
    world.round()
    assert len(checks(world)) == 1
    assert world.rounds.progress.half == 2


def test_a_producer_that_never_answers_is_asked_so_often_and_then_the_message_is_set_aside() -> None:
    world = Harness()
    beat(world)
    send_half(world)
    for _ in range(6):
        world.now += 60_000
        world.round(check_max=3)
    assert len(checks(world)) == 3
    (aside,) = world.records(TRANS_CHECK_MAX_TIME_TOPIC)
    topic = world.broker.state.topics.get(TRANS_CHECK_MAX_TIME_TOPIC)
    assert topic is not None and (topic.read_queue_nums, topic.perm) == (1, 6)  # an operator can read it
    assert aside.body == b"k1"
    resumed = world.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, fields={"msgId": aside.message_id})
    assert resumed.code == ResponseCode.SUCCESS
    world.now += 60_000
    world.round(check_max=3)
    assert len(checks(world)) == 4


def test_a_long_round_lets_others_have_their_turn() -> None:
    world = Harness()
    beat(world)
    for number in range(100):
        end(world, send_half(world, f"k{number}"))
    world.now += OLD_MS
    world.round()
    assert world.rounds.progress.half == 100
    assert world.turns >= 100 // STEPS_AT_ONCE


def test_immunity_puts_the_first_check_off_and_does_not_count() -> None:
    world = Harness()
    beat(world)
    send_half(world, CHECK_IMMUNITY_TIME_IN_SECONDS="150")
    for _ in range(2):
        world.now += 60_000
        world.round(check_max=2)
    assert checks(world) == []
    world.now += 60_000
    world.round(check_max=2)
    ((_, command),) = checks(world)
    assert check_times(decode_properties(decode_record(command.body).properties)) == 1


def test_a_copy_of_a_message_that_was_asked_about_is_not_immune_again() -> None:
    world = Harness()
    beat(world)
    send_half(world, CHECK_IMMUNITY_TIME_IN_SECONDS="50")
    world.now += 60_000
    world.round()
    assert len(checks(world)) == 1
    world.now += 10_000  # the copy is younger than its immunity, and the message is not
    world.round()
    assert len(checks(world)) == 2
    names = [event.action for event in world.events]
    assert "HalfImmune" not in names and names.count("ImmunityOver") == 1


def test_progress_is_written_only_when_the_log_that_justifies_it_is_durable() -> None:
    world = Harness()
    beat(world)
    send_half(world)
    run(world.store.flush())
    world.now += OLD_MS
    world.round()
    assert world.rounds.progress.half == 1
    assert world.rounds.persist_progress() is None
    run(world.store.flush())
    assert world.rounds.persist_progress() == (1, 0)
    assert world.rounds.persist_progress() is None


def test_an_op_message_of_5x_names_several_half_messages() -> None:
    world = Harness()
    beat(world)
    for key in ("a", "b"):
        send_half(world, key)
    run(world.engine.put(_op(world, b"0,1,")))
    world.now += OLD_MS
    world.round()
    assert checks(world) == []


def test_a_damaged_half_message_is_passed_and_those_behind_it_are_asked_about() -> None:
    world = Harness()
    beat(world)
    for key in ("good", "damaged", "last"):
        send_half(world, key)
    world.damage(world.disk.contents()["commitlog/00000000000000000000"].index(b"damaged"), b"damaged")
    world.now += OLD_MS
    world.round()
    assert [header.msg_id for header, _ in checks(world)] == ["good", "last"]
    assert len(world.warnings) == 1 and "half message" in world.warnings[0]
    assert world.rounds.progress.half == 3


def test_a_damaged_op_message_holds_up_no_others() -> None:
    world = Harness()
    beat(world)
    for key in ("a", "b", "c"):
        end(world, send_half(world, key), key=key)
    log = world.disk.contents()["commitlog/00000000000000000000"]
    world.damage(log.index(TRANS_OP_HALF_TOPIC.encode()) - 2, b"0")  # the body, in front of the topic
    world.now += OLD_MS
    for _ in range(2):
        world.round()
    assert checks(world) == []
    assert world.rounds.progress.op == 3
    assert "op message" in world.warnings[0]


def test_a_half_message_that_has_no_room_for_another_check_is_set_aside() -> None:
    world = Harness()
    beat(world)
    send_half(world, "size", long="x")
    (shortest,) = world.records(TRANS_HALF_TOPIC)
    end(world, (0, 0), key="size")
    send_half(world, "full", long="x" * (PROPERTIES_BYTES_MAX - len(shortest.properties) - 5))
    send_half(world, "last")
    world.now += OLD_MS
    world.round()
    assert [header.msg_id for header, _ in checks(world)] == ["last"]
    (aside,) = world.records(TRANS_CHECK_MAX_TIME_TOPIC)
    assert aside.body == b"full"
    assert "PROPERTIES_SIZE_EXCEEDED" in world.warnings[0]


def _op(world: Harness, body: bytes) -> MessageToStore:
    return MessageToStore(
        topic=TRANS_OP_HALF_TOPIC,
        queue_id=0,
        body=body,
        properties=b"TAGS\x01d",
        born_timestamp_ms=world.now_ms(),
        born_host=world.broker.store_host,
        store_host=world.broker.store_host,
    )
