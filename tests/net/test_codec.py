"""What connections read and write, with C and without."""

from __future__ import annotations

import random
from collections.abc import Iterator
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.mutate import damaged
from refmq.errors import RefmqError, UsageError, WireError
from refmq.net import codec
from refmq.net.codec import encode, new_decoder
from refmq.protocol import frame
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.frame import FrameDecoder
from tests.protocol.test_captured import FRAMES


def outcome_of(decoder: FrameDecoder, pieces: Iterator[bytes]) -> tuple[list[RemotingCommand], tuple[Any, ...] | None]:
    found: list[RemotingCommand] = []
    try:
        for piece in pieces:
            found.extend(decoder.feed(piece))
        decoder.end()
    except RefmqError as error:
        return found, error.args
    return found, None


@given(st.lists(st.sampled_from(FRAMES), min_size=1, max_size=4), st.integers(0, 1 << 32), st.integers(1, 3000))
def test_a_connection_hears_the_same_with_and_without_c(sent: list[Any], seed: int, size: int) -> None:
    source = random.Random(seed)
    stream = b"".join(captured.frame for captured in sent)
    if seed % 2:
        stream = damaged(source, [stream])

    def pieces() -> Iterator[bytes]:
        return (stream[at : at + size] for at in range(0, len(stream), size))

    assert outcome_of(new_decoder(), pieces()) == outcome_of(FrameDecoder(), pieces())


def test_a_connection_writes_what_c_leaves() -> None:
    command = request(1, MappingProxyType({"a": "b"}), opaque=1)
    assert encode(command, 7) == frame.encode(command.with_opaque(7))
    assert encode(command) == frame.encode(command)
    with pytest.raises(UsageError):
        encode(request(2**31))


@pytest.mark.parametrize("native", [True, False])
def test_both_directions_keep_the_bound_they_are_given(monkeypatch: pytest.MonkeyPatch, native: bool) -> None:
    if not native:
        monkeypatch.setattr(codec, "NATIVE", None)
    command = request(1, {"a": "b"}, b"body", opaque=1)
    data = encode(command)
    size = len(data)
    assert encode(command, frame_length_max=size) == data
    assert list(new_decoder(size).feed(data)) == [command]
    with pytest.raises(UsageError):
        encode(command, frame_length_max=size - 1)
    with pytest.raises(WireError):
        list(new_decoder(size - 1).feed(data))
