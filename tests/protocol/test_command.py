"""Commands: responses answer their requests, and one-way requests say so."""

from __future__ import annotations

from refmq.protocol.command import SerializeType, oneway, request, response
from refmq.protocol.frame import decode, encode
from refmq.protocol.versions import V4_9_8


def test_a_response_answers_its_request_in_its_serialization() -> None:
    for kind in SerializeType:
        asked = request(105, {"topic": "T"}, opaque=77, serialize_type=kind)
        answer = response(asked, 17, remark="none")
        assert (answer.opaque, answer.is_response, answer.serialize_type) == (77, True, kind)
        assert not asked.is_response
        assert answer.version == V4_9_8
        assert answer.fields == {}
    assert response(asked, 0, serialize_type=SerializeType.JSON).serialize_type is SerializeType.JSON


def test_a_oneway_request_says_so() -> None:
    command = oneway(40, {"consumerGroup": "g"}, b"x", opaque=3)
    assert command.is_oneway
    assert not command.is_response
    assert decode(encode(command)) == command
