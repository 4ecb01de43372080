"""What a group wants of a topic."""

from __future__ import annotations

from types import MappingProxyType

import pytest

from refmq.client.message import ReceivedMessage
from refmq.client.subscription import sql, subscription, wants
from refmq.errors import UsageError
from refmq.model.ids import MessageQueue


def message(tag: str | None) -> ReceivedMessage:
    properties = MappingProxyType({} if tag is None else {"TAGS": tag})
    return ReceivedMessage("T", b"", "", MessageQueue("T", "b", 0), 0, 0, properties)


def test_tags_are_compared_by_text_after_the_broker_compared_hashes() -> None:
    data = subscription("T", " Aa || Cc ||", 5)
    assert data.tags_set == ("Aa", "Cc")
    assert data.code_set == (2112, 2176)
    assert wants(data, message("Aa"))
    assert not wants(data, message("BB")), "it has the hash of Aa"
    assert not wants(data, message(None))


@pytest.mark.parametrize("everything", ["*", "", "  "])
def test_everything_is_a_star(everything: str) -> None:
    data = subscription("T", everything, 5)
    assert (data.sub_string, data.tags_set, data.code_set) == ("*", (), ())
    assert wants(data, message(None))


def test_sql_is_the_brokers_to_decide() -> None:
    data = subscription("T", sql("n > 1"), 5)
    assert (data.expression_type, data.sub_string, data.tags_set) == ("SQL92", "n > 1", ())
    assert wants(data, message("x"))
    with pytest.raises(UsageError, match="needs an expression"):
        sql(" ")
