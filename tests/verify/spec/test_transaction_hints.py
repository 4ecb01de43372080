"""Hints of transactions: every one leads to the event that it should."""

from __future__ import annotations

from refmq.model.step import Event
from refmq.protocol.names import TRANS_HALF_TOPIC, TRANS_OP_HALF_TOPIC
from refmq.verify.spec.store_hints import Hinted
from refmq.verify.spec.transaction_hints import ASIDE, HALF, NAMES, OP, hinted_transactions

COMMIT = 8
BEGIN = [
    Event("StartStore", a=1),
    Event("AppendMessage", "", TRANS_HALF_TOPIC, 0, a=0, b=0, c=77, d=100),
    Event("SendHalf", "p", "T", 2, a=0, b=0, c=77),
    Event("AppendMessage", "", "T", 2, a=100, b=0, c=77, d=100),
    Event("EndTransaction", "p", "T", 2, a=COMMIT, b=0, c=77),
    Event("AppendMessage", "", TRANS_OP_HALF_TOPIC, 0, a=200, b=0, c=78, d=50),
    Event("WriteOp", "", TRANS_OP_HALF_TOPIC, 0, a=0, b=0, c=77),
]
HALF_APPENDED, SENT, FINAL_APPENDED, ENDED, OP_APPENDED, OP_WRITTEN = range(1, 7)


def told(made: Hinted, number: int) -> dict[str, int]:
    row = made.rows[number - 1]
    return dict(zip(NAMES[row.action], (row.queue, *row.fields, *row.hints), strict=True))


def test_a_decision_is_led_to_its_half_message_and_its_final_one() -> None:
    made = hinted_transactions(BEGIN)
    decided = told(made, ENDED)
    assert (decided["of"], decided["sent"], decided["final"]) == (HALF_APPENDED, SENT, FINAL_APPENDED)
    assert decided["actor"] == told(made, SENT)["actor"] > 0
    assert decided["queue"] == told(made, SENT)["queue"] > ASIDE
    assert decided["prior"] == 0
    assert told(made, OP_WRITTEN)["of"] == OP_APPENDED
    assert (told(made, HALF_APPENDED)["queue"], told(made, OP_APPENDED)["queue"]) == (HALF, OP)


def test_a_second_decision_is_led_to_the_first() -> None:
    made = hinted_transactions([*BEGIN, BEGIN[4]])
    assert told(made, len(made.rows))["prior"] == ENDED


def test_a_pull_of_ops_says_which_half_messages_they_name() -> None:
    made = hinted_transactions([*BEGIN, Event("PullOps", "", TRANS_HALF_TOPIC, 0, a=0, b=1)])
    read = told(made, len(made.rows))
    assert made.rows[-1].action == "ReadOp"
    assert (read["op_offset"], read["half_offset"], read["of"], read["again"]) == (0, 0, OP_WRITTEN, OP_APPENDED)


def test_a_copy_knows_how_often_its_producer_was_asked() -> None:
    copies = [
        Event("AppendMessage", "", TRANS_HALF_TOPIC, 0, a=250, b=1, c=77, d=100),
        Event("HalfRenewAndCheck", "", TRANS_HALF_TOPIC, 0, a=0, b=1, c=77, d=1),
        Event("AppendMessage", "", TRANS_HALF_TOPIC, 0, a=350, b=2, c=77, d=100),
        Event("HalfRenewAndCheck", "", TRANS_HALF_TOPIC, 0, a=1, b=2, c=77, d=2),
    ]
    made = hinted_transactions([*BEGIN, *copies])
    first, second = told(made, 8), told(made, 10)
    assert (first["made"], first["checks"], first["new"]) == (0, 1, 7)
    assert (second["made"], second["checks"], second["of"]) == (8, 2, 7)


def test_what_a_power_loss_took_is_lost_and_reopened() -> None:
    after = [Event("PowerLoss"), Event("StartStore"), Event("TruncateLog", a=100)]
    made = hinted_transactions([*BEGIN, *after])
    lost, reopened = told(made, len(made.rows) - 1), told(made, len(made.rows))
    assert [row.action for row in made.rows[-2:]] == ["Lost", "Reopened"]
    assert (lost["queue"], lost["queue_offset"], lost["of"]) == (OP, 0, OP_APPENDED)
    assert (reopened["message"], reopened["of"], reopened["again"]) == (1, FINAL_APPENDED, HALF_APPENDED)
