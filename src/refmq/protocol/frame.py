"""Frames: how commands follow each other on a connection.

    offset  bytes  type  field            valid
    ------  -----  ----  ---------------  -------------------------------------------------------------------
    0       4      i32   length           L: 4 to 16777212, the bytes after this field; Java's limit of
                                          16777216 counts the four bytes of the field itself
    4       1      u8    serialize type   0 JSON, 1 ROCKETMQ binary
    5       3      u24   header length    h: 0 to L - 4, and at most 1 MiB (our limit; Java has none of its own)
    8       h      -     header           see ``header_json`` and ``header_binary``
    8+h     L-4-h  bytes body             may be empty, which is the same as absent

All integers are big-endian. After a peer breaks any of these rules it can no longer be understood, because the start of
its next frame is unknown: the decoder raises once and stays broken, and the connection has to be closed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from refmq.errors import UsageError, WireError
from refmq.protocol.command import RemotingCommand, SerializeType
from refmq.protocol.header_binary import binary_position, decode_binary_header, encode_binary_header
from refmq.protocol.header_json import decode_json_header, encode_json_header, json_position

FRAME_LENGTH_MAX: Final = 16_777_216  # with the length field: com.rocketmq.remoting.frameMaxLength, 4.9.8 and 5.3.3
HEADER_LENGTH_MAX: Final = 1_048_576  # properties, the longest field by far, have 32767 bytes: 200 kB when all escaped
LENGTH_SIZE: Final = 4
PREFIX_SIZE: Final = 8  # length, serialize type, header length: where the header begins

_PREFIX: Final = struct.Struct(">iI")

Shortcut: TypeAlias = Callable[[bytearray, int, int], tuple[RemotingCommand, int] | None]
"""A quicker reader of frames: from a buffer, where one begins in it and how long one may be, the command and where the
next frame begins. None for a frame that is not complete, and for every one that it is not sure of."""


def encode(command: RemotingCommand, *, frame_length_max: int = FRAME_LENGTH_MAX) -> bytes:
    """The frame of ``command``. ``UsageError`` when it does not fit in one."""
    return encode_head(command, len(command.body), frame_length_max=frame_length_max) + command.body


def encode_head(command: RemotingCommand, body_length: int, *, frame_length_max: int = FRAME_LENGTH_MAX) -> bytes:
    """Everything of a frame that stands before its body, for a sender that writes the body itself."""
    if command.serialize_type is SerializeType.JSON:
        header = encode_json_header(command)
    else:
        header = encode_binary_header(command)
    if len(header) > HEADER_LENGTH_MAX:
        raise UsageError(f"A header has at most {HEADER_LENGTH_MAX} bytes; this one has {len(header)}.")
    length = PREFIX_SIZE - LENGTH_SIZE + len(header) + body_length
    if LENGTH_SIZE + length > frame_length_max:
        raise UsageError(f"A frame has at most {frame_length_max} bytes; this one has {LENGTH_SIZE + length}.")
    return _PREFIX.pack(length, command.serialize_type << 24 | len(header)) + header


def decode(frame: bytes, *, frame_length_max: int = FRAME_LENGTH_MAX) -> RemotingCommand:
    """The command of a frame that is complete, with nothing after it."""
    decoder = FrameDecoder(frame_length_max=frame_length_max)
    commands = list(decoder.feed(frame))
    decoder.end()
    if len(commands) != 1:
        raise WireError("frame", 0, "exactly one frame", f"{len(commands)} frames")
    return commands[0]


class FrameDecoder:
    """Turns the bytes of one connection, cut anywhere, into commands.

        decoder = FrameDecoder()
        for command in decoder.feed(chunk): ...
        decoder.end()    # when the peer has closed: raises if it stopped inside a frame

    ``feed`` takes the whole chunk and yields the commands one by one; good frames before a bad one are yielded
    before the error is raised. At most one incomplete frame and one chunk are held, so memory is bounded by
    ``frame_length_max`` and the chunk, and a length is refused as soon as its bytes are there. The header is limited
    apart from the frame because a parsed JSON document takes many times the room of its text.

    ``shortcut`` is asked first. It may only be faster: what it gives is what would have been read here.
    """

    __slots__ = ("_buffer", "_consumed", "_error", "_frame_length_max", "_shortcut")

    def __init__(self, *, frame_length_max: int = FRAME_LENGTH_MAX, shortcut: Shortcut | None = None) -> None:
        if frame_length_max < PREFIX_SIZE:
            raise UsageError(f"The longest frame must have at least {PREFIX_SIZE} bytes, not {frame_length_max}.")
        self._frame_length_max = frame_length_max
        self._shortcut = shortcut
        self._buffer = bytearray()
        self._consumed = 0  # bytes at the start of the buffer that have been given as commands already
        self._error: WireError | None = None

    @property
    def buffered(self) -> int:
        """How many bytes of an incomplete frame are waiting."""
        return len(self._buffer) - self._consumed

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[RemotingCommand]:
        """The commands that are complete with ``data``. ``WireError`` on a bad frame and on every call after it."""
        if self._error is None:
            self._buffer += data
        return self._commands()

    def end(self) -> None:
        """Mark the end of the stream. Raises if the last frame is incomplete."""
        if self._error is not None:
            raise WireError(*self._error.args)
        if self.buffered:
            raise WireError("frame", 0, "complete", f"only {self.buffered} bytes before the end")

    def _commands(self) -> Iterator[RemotingCommand]:
        while True:
            if self._error is not None:
                raise WireError(*self._error.args)
            if self._shortcut is not None:
                read = self._shortcut(self._buffer, self._consumed, self._frame_length_max)
                if read is not None:
                    quick, self._consumed = read
                    yield quick
                    continue
            try:
                command = self._next()
            except WireError as error:
                # A copy: the raised one refers to us through its traceback, and the circle would keep its bytes.
                self._error = WireError(*error.args)
                self._buffer = bytearray()
                self._consumed = 0
                raise
            if command is None:
                break
            yield command
        # Once for each chunk, not for each frame: cutting the front off copies what is left.
        del self._buffer[: self._consumed]
        self._consumed = 0

    def _next(self) -> RemotingCommand | None:
        start = self._consumed
        available = len(self._buffer) - start
        if available < LENGTH_SIZE:
            return None
        length = int.from_bytes(self._buffer[start : start + LENGTH_SIZE], "big", signed=True)
        shortest = PREFIX_SIZE - LENGTH_SIZE
        if not shortest <= length <= self._frame_length_max - LENGTH_SIZE:
            raise WireError("length", 0, f"{shortest} to {self._frame_length_max - LENGTH_SIZE}", length)
        if available < PREFIX_SIZE:
            return None
        serialize_type = self._buffer[start + LENGTH_SIZE]
        if serialize_type > SerializeType.ROCKETMQ:
            raise WireError("serializeType", LENGTH_SIZE, "0 or 1", serialize_type)
        header_length = int.from_bytes(self._buffer[start + LENGTH_SIZE + 1 : start + PREFIX_SIZE], "big")
        longest = min(length - shortest, HEADER_LENGTH_MAX)
        if header_length > longest:
            raise WireError("headerLength", LENGTH_SIZE + 1, f"0 to {longest}", header_length)
        if available < LENGTH_SIZE + length:
            return None
        body_start = start + PREFIX_SIZE + header_length
        header = bytes(self._buffer[start + PREFIX_SIZE : body_start])
        body = bytes(self._buffer[body_start : start + LENGTH_SIZE + length])
        decode_header = decode_json_header if serialize_type == SerializeType.JSON else decode_binary_header
        command = decode_header(header, base=PREFIX_SIZE, body=body)
        self._consumed = start + LENGTH_SIZE + length
        return command


def field_offset(command: RemotingCommand, name: str) -> int:
    """The offset in its frame of an ext field's value in a received command; that of the header if unknown."""
    position = json_position if command.serialize_type is SerializeType.JSON else binary_position
    at = position(command.header, name) if command.header else None
    return PREFIX_SIZE + (at or 0)
