"""Transactions: a half message is seen by nobody, a committed one by everybody once, a rolled back one never."""

from __future__ import annotations

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from refmq.broker import transactions
from refmq.broker.check_rounds import CheckRounds, Progress
from refmq.broker.transactions import Decision, Transactions
from refmq.model.ids import PhysicalOffset
from refmq.protocol.codes import ResponseCode
from refmq.protocol.command import RemotingCommand
from refmq.protocol.names import TRANS_CHECK_MAX_TIME_TOPIC, TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC
from refmq.protocol.record import decode_properties, parse_message_id
from refmq.store.values import MessageToStore, PutResult, PutStatus
from tests.broker.halves import beat, checks, end, finals, send_half
from tests.broker.harness import Harness

OLD_MS = 6_001


def test_a_half_message_is_out_of_sight_until_it_is_committed() -> None:
    world = Harness()
    place = send_half(world, TAGS="a")
    assert finals(world) == []
    (half,) = world.records(TRANS_HALF_TOPIC)
    properties = decode_properties(half.properties)
    assert (properties["REAL_TOPIC"], properties["REAL_QID"], half.sys_flag) == ("T", "1", 0)
    answer = end(world, place)
    assert answer is not None
    assert answer.code == ResponseCode.SUCCESS
    (final,) = world.records("T", 1)
    assert (final.sys_flag & 0xC, final.prepared_transaction_offset) == (0x8, place[1])
    assert final.properties == half.properties
    (op,) = world.records(TRANS_OP_HALF_TOPIC)
    assert (op.body, decode_properties(op.properties)) == (b"0", {"WAIT": "true", "TAGS": "d"})


def test_a_rolled_back_message_is_never_seen() -> None:
    world = Harness()
    place = send_half(world)
    end(world, place, Decision.ROLLBACK)
    assert finals(world) == []
    assert len(world.records(TRANS_OP_HALF_TOPIC)) == 1


def test_an_unknown_decision_is_not_answered_and_changes_nothing() -> None:
    world = Harness()
    place = send_half(world)
    assert end(world, place, Decision.UNKNOWN) is None
    assert world.records(TRANS_OP_HALF_TOPIC) == []


@pytest.mark.parametrize(
    ("change", "remark"),
    [
        ({"place": (0, 10_000)}, "Find prepared transaction message failed"),
        ({"place": (7, 0)}, "The transaction state table offset wrong"),
        ({"group": "others"}, "The producer group wrong"),
        ({"key": "other"}, "The message id wrong"),
    ],
)
def test_a_decision_that_means_something_else_is_refused(change: dict[str, object], remark: str) -> None:
    world = Harness()
    place = send_half(world)
    arguments = {"place": place, **change}
    answer = end(world, **arguments)  # type: ignore[arg-type]  # a table of mixed arguments
    assert answer is not None
    assert (answer.code, answer.remark) == (ResponseCode.SYSTEM_ERROR, remark)
    assert finals(world) == []


def test_a_decision_about_a_record_that_is_no_half_message_is_refused() -> None:
    world = Harness()
    answer = world.send("T", properties={"PGROUP": "producers", "UNIQ_KEY": "k1"})
    _, physical = parse_message_id(answer.fields["msgId"])
    refused = end(world, (0, physical))
    assert refused is not None
    assert refused.remark == "The message is not a half message"


def test_a_commit_that_comes_twice_delivers_once_and_after_a_restart_too() -> None:
    world = Harness()
    place = send_half(world)
    end(world, place)
    end(world, place)
    assert finals(world) == [b"k1"]
    world.broker.transactions = Transactions(world.engine, world, world.broker.store_host)  # memory is gone
    end(world, place)
    assert finals(world) == [b"k1"]


def test_a_second_commit_is_not_over_before_the_first_one_is_safe(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Harness()
    place = send_half(world)
    put = world.engine.put
    answers: list[RemotingCommand | None] = []

    async def put_slowly(message: MessageToStore, *, wait_durable: bool = True) -> PutResult:
        result = await put(message, wait_durable=wait_durable)
        if wait_durable and not answers:  # the disk takes its time, and the second commit comes
            answers.append(None)
            answers.append(end(world, place))
        return result

    monkeypatch.setattr(world.engine, "put", put_slowly)
    end(world, place)
    assert answers[1] is not None
    assert answers[1].code == ResponseCode.SYSTEM_ERROR
    assert finals(world) == [b"k1"]
    again = end(world, place)
    assert again is None or again.code == ResponseCode.SUCCESS
    assert finals(world) == [b"k1"]


def test_a_commit_that_the_store_does_not_take_can_be_sent_again() -> None:
    world = Harness()
    place = send_half(world)
    world.refuse_puts = PutStatus.SERVICE_NOT_AVAILABLE
    answer = end(world, place)
    assert answer is not None
    assert answer.code == ResponseCode.SYSTEM_ERROR
    world.refuse_puts = None
    end(world, place)
    assert finals(world) == [b"k1"]


def test_a_late_decision_about_the_original_and_an_answer_about_the_copy_deliver_once() -> None:
    world = Harness()
    beat(world)
    place = send_half(world)
    world.now += OLD_MS
    world.round()
    ((header, _),) = checks(world)
    end(world, place)
    end(world, (header.tran_state_table_offset, header.commit_log_offset))
    assert finals(world) == [b"k1"]


KEYS = ("k0", "k1", "k2")


ACTIONS = ("send", "send unheard", "decide", "decide", "lose", "lose", "arrive", "again", "round", "round", "forget")


STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.sampled_from(KEYS)), min_size=10, max_size=30)


class Play:
    """A history: which decision a producer takes is fixed by the key, so it never changes its mind."""

    def __init__(self) -> None:
        self.world = Harness()
        beat(self.world)
        self.places: dict[str, tuple[int, int]] = {}
        self.decided: dict[str, Decision] = {}
        self.under_way: list[tuple[str, tuple[int, int]]] = []

    def step(self, what: str, key: str) -> None:
        match what:
            case "send" if key not in self.places:
                self.places[key] = send_half(self.world, key)
            case "send unheard" if key not in self.places:  # the answer is lost: the producer will send again
                send_half(self.world, key)
            case "decide" if key in self.places and key not in self.decided:
                self.decided[key] = Decision.ROLLBACK if key == "k2" else Decision.COMMIT
                self.under_way.append((key, self.places[key]))
            case "lose" if self.under_way:
                self.under_way.pop(0)
            case "arrive" if self.under_way:
                self.deliver(*self.under_way.pop())
            case "again" if self.under_way:
                self.deliver(*self.under_way[0])
            case "round":
                self.world.now += 60_000
                self.world.round(check_max=3)
                self.answer()
            case "forget":  # a process crash: memory is gone, progress is what was written
                self.world.broker.transactions = Transactions(
                    self.world.engine, self.world, self.world.broker.store_host
                )
                half, op = self.world.rounds.saved
                self.world.rounds = CheckRounds(
                    self.world.engine,
                    self.world,
                    self.world.broker.transactions,
                    Progress(half, op, PhysicalOffset(0)),
                    self.world.rounds._ask,
                    self.world.broker.ensure_topic,
                )

    def answer(self) -> None:
        """The producer answers every check; an undecided one with "unknown", which is no answer at all."""
        for header, _ in checks(self.world):
            if header.msg_id in self.decided:
                self.under_way.append((header.msg_id, (header.tran_state_table_offset, header.commit_log_offset)))
        self.world.peer(9).received.clear()

    def deliver(self, key: str, place: tuple[int, int]) -> None:
        end(self.world, place, self.decided[key], key)

    def finish(self) -> None:
        """Everything that is under way arrives and every check is answered, until nothing moves any more."""
        for _ in range(6):
            while self.under_way:
                self.deliver(*self.under_way.pop())
            self.step("round", "")

    def mistake(self) -> str | None:
        seen = finals(self.world)
        aside = {record.body.decode() for record in self.world.records(TRANS_CHECK_MAX_TIME_TOPIC)}
        for key in self.places:
            count = seen.count(key.encode())
            decision = self.decided.get(key)
            if decision is not Decision.COMMIT and count:
                return "RolledBackNeverVisible" if decision else "NoHalfVisible"
            if decision is Decision.COMMIT and count > 1:
                return "CommittedOnce"
            if decision is Decision.COMMIT and not count and key not in aside:
                return "CommittedVisible"
        return None


def play(steps: list[tuple[str, str]]) -> str | None:
    history = Play()
    for what, key in steps:
        history.step(what, key)
    history.finish()
    return history.mistake()


@given(STEPS)
def test_the_promises_hold_over_any_history(steps: list[tuple[str, str]]) -> None:
    assert play(steps) is None


@pytest.mark.parametrize(
    "mutant", ["no finished set", "a round stores progress past what it did not ask", "rollback taken for commit"]
)
def test_the_promises_catch_their_mutants(mutant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    match mutant:
        case "no finished set":
            monkeypatch.setattr(Transactions, "is_finished", lambda self, half: False)
        case "rollback taken for commit":

            class OnlyCommits:
                COMMIT = Decision.COMMIT

                def __new__(cls, value: int) -> Decision:  # type: ignore[misc]  # stands in for the enum's call
                    return Decision.COMMIT

            monkeypatch.setattr(transactions, "Decision", OnlyCommits)
        case _:
            honest = CheckRounds.round_finish

            def hasty(self: CheckRounds) -> None:
                honest(self)
                end_ = self._engine.store.max_offset(TRANS_HALF_TOPIC, 0)
                self.progress = Progress(end_, self.progress.op, self.progress.justified_at)

            monkeypatch.setattr(CheckRounds, "round_finish", hasty)

    @settings(database=None, max_examples=400, phases=[Phase.generate])
    @given(STEPS)
    def property_(steps: list[tuple[str, str]]) -> None:
        assert play(steps) is None

    with pytest.raises(AssertionError):
        property_()
