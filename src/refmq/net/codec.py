"""Frames as connections read and write them: in C where it was built, in `refmq.protocol.frame` for all the rest.

C takes what it surely understands and gives the same values and the same bytes. Whatever is wrong, and what is legal
and rare, goes to the reference, so each error has one place and one wording.
"""

from __future__ import annotations

from typing import Final

import refmq_fast
from refmq.protocol import frame
from refmq.protocol.command import LanguageCode, RemotingCommand, SerializeType
from refmq.protocol.frame import FRAME_LENGTH_MAX, FrameDecoder


def _native() -> refmq_fast.FrameCodec[RemotingCommand] | None:
    if not refmq_fast.AVAILABLE:
        return None
    return refmq_fast.FrameCodec(RemotingCommand, tuple(LanguageCode), tuple(SerializeType))


NATIVE: Final = _native()


def new_decoder(frame_length_max: int = FRAME_LENGTH_MAX) -> FrameDecoder:
    """The decoder of one connection."""
    return FrameDecoder(frame_length_max=frame_length_max, shortcut=None if NATIVE is None else NATIVE.decode)


def encode(command: RemotingCommand, opaque: int | None = None, *, frame_length_max: int = FRAME_LENGTH_MAX) -> bytes:
    """The frame of ``command``, under another request id if one is given. ``UsageError`` when it does not fit."""
    if NATIVE is not None:
        data = NATIVE.encode(command, opaque, frame_length_max)
        if data is not None:
            return data
    renumbered = command if opaque is None else command.with_opaque(opaque)
    return frame.encode(renumbered, frame_length_max=frame_length_max)
