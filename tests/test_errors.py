"""The error tree: messages are sentences, fields are arguments, everything survives pickling."""

from __future__ import annotations

import pickle

import pytest

from refmq import errors
from refmq.errors import CheckFound, CorruptRecord, MissingTool, RefmqError, UsageError, WireError

EXAMPLES = [
    WireError("header_length", 4, "at most 65536", 16777216),
    CorruptRecord("body_crc", 4096, "0x1f2e3d4c", "0x00000000"),
    UsageError("--port must be between 0 and 65535, not 70000"),
    MissingTool("A Java runtime", "Install Debian's openjdk-17-jre-headless."),
    CheckFound("2 of 1000 acknowledged messages are missing"),
]


def test_a_decode_error_names_field_offset_expected_and_found() -> None:
    assert str(EXAMPLES[0]) == "header_length at byte offset 4 should be at most 65536 but is 16777216"
    assert str(EXAMPLES[1]) == "body_crc at physical offset 4096 should be 0x1f2e3d4c but is 0x00000000"


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling(error: RefmqError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert copy.args == error.args
    assert str(copy) == str(error)


def test_every_exported_error_belongs_to_the_tree() -> None:
    for name in errors.__all__:
        assert issubclass(getattr(errors, name), RefmqError), name
