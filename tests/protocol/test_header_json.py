"""The JSON header, as each client writes it."""

from __future__ import annotations

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import WireError
from refmq.protocol.command import LanguageCode, RemotingCommand
from refmq.protocol.frame import FrameDecoder, decode, encode


def decoding_is_total(data: bytes) -> None:
    decoder = FrameDecoder()
    offset = 0
    try:
        for command in decoder.feed(data):
            encode(command)  # whatever was accepted can be written again
        decoder.end()
    except WireError as error:
        offset = error.offset
    assert 0 <= offset <= len(data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(
        st.sampled_from(["code", "language", "version", "opaque", "flag", "remark", "extFields", "other"]), json_values
    )
)
def test_any_json_in_a_header_is_a_command_or_an_error(document: dict[str, object]) -> None:

    header = json.dumps(document).encode()
    decoding_is_total(struct.pack(">iI", 4 + len(header), len(header)) + header)


def test_a_deeply_nested_header_is_an_error() -> None:
    header = b'{"extFields":' * 100_000
    with pytest.raises(WireError):
        list(FrameDecoder().feed(struct.pack(">iI", 4 + len(header), len(header)) + header))


def from_json(header: bytes) -> RemotingCommand:
    return decode(struct.pack(">iI", 4 + len(header), len(header)) + header)


def test_the_header_of_a_cpp_client() -> None:
    """Numbers in extFields, empty ACL fields, a line feed at the end."""
    command = from_json(
        b'{"code":11,"extFields":{"AccessKey":"","OnsChannel":"","Signature":"","queueId":3,"queueOffset":42},'
        b'"flag":0,"language":"CPP","opaque":1,"version":333}\n'
    )
    assert command.language is LanguageCode.CPP
    assert command.fields["queueId"] == "3"
    assert command.fields["Signature"] == ""


def test_the_header_of_a_node_client() -> None:
    """JavaScript numbers and booleans in extFields, no remark."""
    command = from_json(
        b'{"code":310,"language":"JAVA","opaque":1,"flag":0,"version":121,"extFields":{"d":4,"k":false,"j":1.5,"l":null}}'
    )
    assert command.ext_fields == {"d": "4", "k": "false", "j": "1.5"}


def test_the_header_of_a_go_client() -> None:
    command = from_json(
        b'{"code":105,"language":"GO","version":317,"opaque":2,"flag":0,"remark":"","extFields":{"topic":"T1"}}'
    )
    assert (command.language, command.version, command.remark) == (LanguageCode.GO, 317, "")


def test_what_is_absent_has_javas_default() -> None:
    command = from_json(b'{"language":9,"code":"34"}')
    assert (command.code, command.language, command.version, command.flag) == (34, LanguageCode.GO, 0, 0)
    assert from_json(b"{}").language is LanguageCode.JAVA
    assert from_json(b'{"language":"COBOL"}').language is LanguageCode.OTHER
