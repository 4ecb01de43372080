"""Frames are heard as they arrive, whole or in pieces, in both forms of headers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.cluster.wire import Wire
from refmq.protocol.command import SerializeType, oneway, request, response
from refmq.protocol.frame import encode
from refmq.verify.oracles.wire import SeenFrame

ASKED = request(34, {"a": "\u00e9"}, b'"opaque":9', opaque=7)
FRAMES = (ASKED, response(ASKED, 0), oneway(37, {}))


@pytest.mark.parametrize("form", SerializeType)
@pytest.mark.parametrize("piece", [1, 5, 10_000])
def test_every_frame_is_heard_once(form: SerializeType, piece: int) -> None:
    wire = Wire()
    for sender, target, command in ((1, 2, FRAMES[0]), (2, 1, FRAMES[1]), (1, 2, FRAMES[2])):
        data = encode(replace(command, serialize_type=form))
        for at in range(0, len(data), piece):
            wire.hear(sender, target, data[at : at + piece])
    assert wire.frames == [
        SeenFrame(1, 1, 7, is_answer=False, wants_answer=True),
        SeenFrame(1, 2, 7, is_answer=True, wants_answer=False),
        SeenFrame(1, 1, 0, is_answer=False, wants_answer=False),
    ]
