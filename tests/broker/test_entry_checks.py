"""What peers may name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from refmq.broker.entry_checks import check_client, check_group, check_queue, check_topic
from refmq.errors import WireError
from refmq.model.ids import MessageQueue

LEGAL: list[Callable[[], None]] = [
    lambda: check_group("g" * 255),
    lambda: check_group("ns%g|1"),
    lambda: check_topic("%RETRY%" + "g" * 255),
    lambda: check_client("127.0.0.1@12#é"),
    lambda: check_queue(MessageQueue("T", "any broker", 65_535)),
]
ILLEGAL: list[tuple[str, Callable[[], None]]] = [
    ("group", lambda: check_group("")),
    ("group", lambda: check_group("g" * 256)),
    ("group", lambda: check_group("a@b")),
    ("topic", lambda: check_topic("a b")),
    ("topic", lambda: check_topic("t" * 263)),
    ("clientId", lambda: check_client("")),
    ("clientId", lambda: check_client("c" * 1_025)),
    ("queueId", lambda: check_queue(MessageQueue("T", "b", -1))),
    ("queueId", lambda: check_queue(MessageQueue("T", "b", 65_536))),
    ("brokerName", lambda: check_queue(MessageQueue("T", "b" * 256, 0))),
]


@pytest.mark.parametrize("check", LEGAL)
def test_what_clients_send_passes(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize(("field", "check"), ILLEGAL)
def test_what_nobody_could_use_is_refused_by_its_field(field: str, check: Callable[[], None]) -> None:
    with pytest.raises(WireError) as refused:
        check()
    assert refused.value.field == field
    assert len(str(refused.value)) < 300
