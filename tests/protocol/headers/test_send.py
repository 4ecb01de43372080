from __future__ import annotations

import pytest
from hypothesis import given

from refmq.errors import UsageError
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.frame import decode, encode
from refmq.protocol.headers import (
    SendMessageRequest,
    decode_send_header,
    encode_send_header,
)
from refmq.protocol.headers.codec import header_plan
from refmq.protocol.headers.send import LETTERS
from tests.protocol.headers.names import UPSTREAM
from tests.protocol.strategies import headers_of


@pytest.mark.parametrize("code", [10, 310, 320, 324, 325])
@given(header=headers_of(SendMessageRequest))
def test_a_send_header_comes_back_under_every_code(code: int, header: SendMessageRequest) -> None:
    command = request(code, encode_send_header(header, code))
    assert decode_send_header(decode(encode(command))) == header


def test_the_letters_of_the_short_send_header() -> None:
    assert "".join(LETTERS.values()) == "abcdefghijklmn"
    assert list(LETTERS) == [plan.wire_name for plan in header_plan(SendMessageRequest)]
    with pytest.raises(UsageError):
        decode_send_header(RemotingCommand(code=11))
    with pytest.raises(UsageError):
        encode_send_header(
            SendMessageRequest(
                producer_group="g",
                topic="T",
                default_topic="TBW102",
                default_topic_queue_nums=4,
                queue_id=0,
                sys_flag=0,
                born_timestamp=0,
                flag=0,
            ),
            11,
        )


def test_a_retry_without_its_limit_is_readable() -> None:
    """4.9.2 and before answered a server error: an absent optional number was used without a look."""
    fields = {"a": "g", "b": "%RETRY%g", "c": "TBW102", "d": "4", "e": "0", "f": "0", "g": "1", "h": "0"}
    assert decode_send_header(RemotingCommand(code=310, ext_fields=fields)).max_reconsume_times is None


def test_the_letters_are_those_of_the_published_class() -> None:
    assert set(UPSTREAM["SendMessageRequestHeaderV2"]) == set(LETTERS.values())
    for wire_name, letter in LETTERS.items():
        if wire_name != "bname":
            assert UPSTREAM["SendMessageRequestHeaderV2"][letter] == UPSTREAM["SendMessageRequest"][wire_name]
