"""The answers that `answer_test.c` expects of C are those that the reference writes."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from refmq.protocol.command import RemotingCommand, SerializeType, response
from refmq.protocol.header_json import encode_json_header
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.offsets import QueryConsumerOffsetResponse
from refmq.protocol.headers.pull import PullMessageResponse
from refmq.protocol.headers.send import SendMessageResponse

SOURCE = Path(__file__).parent / "answer_test.c"


def literal(name: str) -> bytes:
    """The text of a C string of the test, whose pieces stand behind a comment with its name."""
    found = re.search(rf"/\* {name} \*/\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+);", SOURCE.read_text())
    assert found is not None, name
    pieces = re.findall(r"\"(?:[^\"\\]|\\.)*\"", found[1])
    return "".join(ast.literal_eval(piece) for piece in pieces).encode()


def asked(opaque: int) -> RemotingCommand:
    return RemotingCommand(0, opaque=opaque, serialize_type=SerializeType.JSON)


ANSWERS = {
    "sent": response(
        asked(-(2**31)),
        0,
        encode_header(
            SendMessageResponse(
                msg_id="7F00000100002A9F00000000000000F0",
                queue_id=3,
                queue_offset=2**63 - 1,
                region="DefaultRegion",
                trace_on="true",
            )
        ),
    ),
    "pulled": response(
        asked(7),
        19,
        encode_header(
            PullMessageResponse(suggest_which_broker_id=0, next_begin_offset=5, min_offset=-1, max_offset=-(2**63))
        ),
        remark="OFFSET_OVERFLOW_ONE",
    ),
    "offset": response(asked(8), 0, encode_header(QueryConsumerOffsetResponse(offset=12))),
    "code": response(asked(9), 0),
}


@pytest.mark.parametrize(("name", "command"), ANSWERS.items())
def test_c_expects_what_the_reference_writes(name: str, command: RemotingCommand) -> None:
    assert encode_json_header(command) == literal(name)
