"""Listens to the simulated wires: every frame that arrives, as far as oracles look at it."""

from __future__ import annotations

import re
import struct
from typing import Final

from refmq.verify.oracles.base import Finding
from refmq.verify.oracles.wire import SeenFrame

PREFIX: Final = struct.Struct(">iI")
BINARY: Final = struct.Struct(">hBhii")
"""The fixed part of a binary header: code, language, version, opaque, flag."""
HEADER_BYTES_MASK: Final = 0x00FF_FFFF
IS_ANSWER: Final = 1
IS_ONEWAY: Final = 2
CONTROL: Final = re.compile(rb"[\x00-\x1f]")
_NUMBER: Final = {name: re.compile(rb'"%s"\s*:\s*(-?\d+)' % name.encode()) for name in ("opaque", "flag")}


class Wire:
    """The frames of all connections, in the order in which they arrived."""

    def __init__(self) -> None:
        self.frames: list[SeenFrame] = []
        self.faults: list[Finding] = []
        """Headers that a strict reader of JSON would refuse."""
        self._left: dict[int, bytes] = {}

    def hear(self, sender: int, target: int, data: bytes) -> None:
        """Some bytes from one end of a connection to the other."""
        data = self._left.pop(sender, b"") + data
        at = 0
        while len(data) - at >= PREFIX.size:
            length, marked = PREFIX.unpack_from(data, at)
            end = at + 4 + length
            if len(data) < end or length <= 0:
                break
            header = data[at + PREFIX.size : at + PREFIX.size + (marked & HEADER_BYTES_MASK)]
            self._frame(min(sender, target), sender, header, is_json=marked >> 24 == 0)
            at = end
        if at < len(data):
            self._left[sender] = data[at:]

    def _frame(self, connection: int, sender: int, header: bytes, *, is_json: bool) -> None:
        if is_json:
            if (raw := CONTROL.search(header)) is not None:
                sentence = f"the JSON of a header holds a bare character {raw[0][0]:#04x}"
                self.faults.append(Finding("WellFormed", sentence))
            found = {name: number.search(header) for name, number in _NUMBER.items()}
            opaque, flag = (int(match[1]) if match is not None else 0 for match in found.values())
        else:
            _, _, _, opaque, flag = BINARY.unpack_from(header)
        is_answer = bool(flag & IS_ANSWER)
        self.frames.append(SeenFrame(connection, sender, opaque, is_answer, not flag & (IS_ANSWER | IS_ONEWAY)))
