"""What the properties of a message ask of its broker."""

from __future__ import annotations

import pytest

from refmq.plane.property_rules import delay_level, is_half, stored_properties, waits_for_flush
from refmq.protocol.record import (
    TRANSACTION_COMMIT,
    TRANSACTION_NONE,
    TRANSACTION_PREPARED,
    TRANSACTION_ROLLBACK,
    decode_properties,
)


@pytest.mark.parametrize(
    ("text", "waits"), [(None, True), ("true", True), ("x", True), ("false", False), ("FALSE", False)]
)
def test_only_an_explicit_false_does_not_wait(text: str | None, waits: bool) -> None:
    assert waits_for_flush({} if text is None else {"WAIT": text}) is waits


@pytest.mark.parametrize(
    ("text", "half"), [(None, False), ("true", True), ("TRUE", True), ("false", False), ("", False)]
)
def test_only_an_explicit_true_is_a_half_message(text: str | None, half: bool) -> None:
    assert is_half({} if text is None else {"TRAN_MSG": text}) is half


@pytest.mark.parametrize(
    ("text", "level"),
    [("3", 3), ("0", 0), ("", 0), ("-1", 0), ("x", 0), ("²", 0), ("9" * 10, 9_999_999_999), ("9" * 11, 0)],
)
def test_a_delay_level_is_a_number_that_is_not_too_long(text: str, level: int) -> None:
    assert delay_level(TRANSACTION_NONE, {"DELAY": text}) == level


def test_half_messages_and_rollbacks_are_never_delayed() -> None:
    levels = [
        delay_level(kind, {"DELAY": "3"})
        for kind in (TRANSACTION_NONE, TRANSACTION_COMMIT, TRANSACTION_PREPARED, TRANSACTION_ROLLBACK)
    ]
    assert levels == [3, 3, 0, 0]


def test_only_a_delayed_message_keeps_its_wish_to_wait() -> None:
    properties = {"WAIT": "true", "TAGS": "a"}
    assert decode_properties(stored_properties(properties, 0)) == {"TAGS": "a"}
    assert decode_properties(stored_properties(properties, 3)) == properties
