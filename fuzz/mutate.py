"""Damages inputs: bits, bytes, numbers, pieces. Everything is decided by one random source, so a seed replays a run."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final

INPUT_BYTES_MAX: Final = 64 * 1024
"""Longer inputs are cut: a small one finds the same."""

INTERESTING: Final = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 1 << 63)
"""Numbers at which lengths and offsets break."""

TOKENS: Final = (
    b'{"$ref":"$"}',
    b'{"$ref":".."}',
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\u",
    b"\\uD800",
    b",",
    b":",
    b"null",
    b"true",
    b"1e999",
    b"-0",
    b"9223372036854775808",
    b"NaN",
    b"'",
    b"/*",
    b"\x00",
    b"\x01",
    b"\x02",
    b"\xda\xa3\x20\xa7",
    b"\xcb\xd4\x31\x94",
    b"\xf0\x9f\x98\x80",
    b"\xff",
)
"""Pieces that mean something to one of the readers."""

Mutator = Callable[[random.Random, bytearray, Sequence[bytes]], None]


def flip_bit(source: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    if data:
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)


def set_byte(source: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    if data:
        data[source.randrange(len(data))] = source.randrange(256)


def set_number(source: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """A big-endian number of 1, 2, 4 or 8 bytes becomes one that is interesting, or a little larger or smaller."""
    size = source.choice((1, 2, 4, 8))
    if len(data) < size:
        return
    at = source.randrange(len(data) - size + 1)
    old = int.from_bytes(data[at : at + size], "big")
    new = source.choice((source.choice(INTERESTING), old + source.randint(-16, 16)))
    data[at : at + size] = (new % (1 << 8 * size)).to_bytes(size, "big")


def remove_piece(source: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    if data:
        at = source.randrange(len(data))
        del data[at : at + source.randint(1, 16)]


def cut(source: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    del data[source.randrange(len(data) + 1) :]


def insert_token(source: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    at = source.randrange(len(data) + 1)
    data[at:at] = source.choice(TOKENS)


def repeat_piece(source: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    if data:
        at = source.randrange(len(data))
        piece = bytes(data[at : at + source.randint(1, 32)])
        data[at:at] = piece * source.choice((1, 2, 50))


def take_piece(source: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """A piece of another input."""
    other = source.choice(others)
    if other:
        begin = source.randrange(len(other))
        piece = other[begin : begin + source.randint(1, 64)]
        at = source.randrange(len(data) + 1)
        data[at : at + source.choice((0, len(piece)))] = piece


MUTATORS: Final[tuple[Mutator, ...]] = (
    flip_bit,
    set_byte,
    set_number,
    set_number,
    remove_piece,
    cut,
    insert_token,
    repeat_piece,
    take_piece,
)


def damaged(source: random.Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds with a few things wrong."""
    data = bytearray(source.choice(seeds))
    for _ in range(source.choice((1, 1, 2, 4, 8))):
        source.choice(MUTATORS)(source, data, seeds)
    return bytes(data[:INPUT_BYTES_MAX])


def shrunk(data: bytes, breaks: Callable[[bytes], bool], attempts_max: int = 2_000) -> bytes:
    """A shorter input that breaks the same: pieces are left out, then bytes become zero."""
    attempts = 0
    size = max(1, len(data) // 2)
    while size and attempts < attempts_max:
        at, went = 0, False
        while at < len(data) and attempts < attempts_max:
            attempts += 1
            candidate = data[:at] + data[at + size :]
            if breaks(candidate):
                data, went = candidate, True
            else:
                at += size
        if not went:
            size //= 2
    for at in range(len(data)):
        candidate = data[:at] + b"\0" + data[at + 1 :]
        attempts += 1
        if attempts >= 2 * attempts_max:
            break
        if data[at] and breaks(candidate):
            data = candidate
    return data
