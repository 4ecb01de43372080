"""What a stored message must be, and what makes another of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from conformance.cluster.copies import FINAL, differences
from refmq.protocol.record import encode_properties

SENT = {"UNIQ_KEY": "k1", "TAGS": "a", "xé": "é"}
ADDED = {"CLUSTER": "DefaultCluster", "WAIT": "true"}
BACK = {"RETRY_TOPIC": "t", "ORIGIN_MESSAGE_ID": "id", "DELAY": "1", "REAL_TOPIC": "%RETRY%g", "REAL_QID": "0"}
IDS = {"id"}


@dataclass
class Stored:
    """As much of a record as is looked at."""

    topic: str = "t"
    extra: dict[str, str] = field(default_factory=dict)
    sent: dict[str, str] = field(default_factory=lambda: dict(SENT))
    sys_flag: int = 0
    reconsume_times: int = 0

    @property
    def properties(self) -> bytes:
        return encode_properties({**self.sent, **ADDED, **self.extra})


def found(stored: Stored) -> list[str]:
    return list(differences(stored, SENT, "t", IDS))  # type: ignore[arg-type]  # a record in all that is read of it


@pytest.mark.parametrize(
    "stored",
    [
        Stored(),
        Stored(extra={"DELAY": "1", "REAL_TOPIC": "t", "REAL_QID": "0"}),
        Stored(extra={"TRAN_MSG": "true", "REAL_TOPIC": "t", "REAL_QID": "0"}, sys_flag=FINAL & 8),
        Stored("%RETRY%g", BACK, reconsume_times=1),
        Stored("%DLQ%g", {**BACK, "DELAY": "0"}, reconsume_times=3),
    ],
)
def test_a_message_with_what_brokers_add_is_the_one_that_was_sent(stored: Stored) -> None:
    assert found(stored) == []


@pytest.mark.parametrize(
    ("stored", "what"),
    [
        (Stored(sent={**SENT, "TAGS": "b"}), "TAGS is 'b', not 'a'"),
        (Stored(sent={"UNIQ_KEY": "k1", "TAGS": "a"}), "xé is None"),
        (Stored(extra={"CLUSTER": "another"}), "CLUSTER is 'another'"),
        (Stored(extra={"BUYER": "me"}), "nobody has set BUYER"),
        (Stored(extra={"REAL_TOPIC": "t"}), "nobody has set REAL_TOPIC"),
        (Stored(extra={"RETRY_TOPIC": "t"}), "nobody has set RETRY_TOPIC"),
        (Stored(reconsume_times=1), "it was sent back 1 times"),
        (Stored("%RETRY%g", BACK), "it was sent back 0 times"),
        (Stored("%RETRY%g", {**BACK, "RETRY_TOPIC": "u"}, reconsume_times=1), "RETRY_TOPIC is 'u', not 't'"),
        (Stored("%RETRY%g", {**BACK, "ORIGIN_MESSAGE_ID": "x"}, reconsume_times=1), "it came from 'x'"),
    ],
)
def test_whatever_else_it_holds_makes_another_of_it(stored: Stored, what: str) -> None:
    (first, *_) = found(stored)
    assert first.startswith(what)
