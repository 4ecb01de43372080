"""What is made quickly is what the class would have made."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import refmq_fast
from refmq.client.message import Message, SendResult, SendStatus
from refmq.model.ids import MessageQueue
from refmq.net.making import maker, new_command, new_message, new_result
from refmq.protocol.command import LanguageCode, RemotingCommand, SerializeType


def test_commands_messages_and_results_are_what_their_classes_make() -> None:
    command = (310, 5, 0, LanguageCode.GO, 317, "r", {"a": "b"}, b"x", SerializeType.ROCKETMQ, b"h")
    message = ("Orders", b"x", "tag", ("k",), {"p": "v"}, 3, 7, False)
    result = (SendStatus.SEND_OK, "id", "place", MessageQueue("Orders", "b", 1), 5, "tx", "region", False)
    assert new_command(*command) == RemotingCommand(*command)
    assert new_command(*command).header == b"h"
    assert new_message(*message) == Message(*message)
    assert new_result(*result) == SendResult(*result)


def test_a_class_that_checks_its_values_is_not_made_without_it() -> None:
    @dataclass(frozen=True, slots=True)
    class Checked:
        value: int

        def __post_init__(self) -> None:
            assert self.value

    with pytest.raises(AssertionError, match="not left out"):
        maker(Checked)


def test_without_c_the_class_makes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refmq_fast, "AVAILABLE", False)
    assert maker(Message) is Message
