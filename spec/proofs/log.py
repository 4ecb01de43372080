"""Records and files: a record fits or leaves room for a blank one; files neither overlap nor leave holes.

The log is a run of bytes in files of `size` bytes. A record of `length` bytes is written when `length + 8` bytes are
left, so that 8 bytes for the head of a blank record are always left after it (`CommitLog.has_room`). Position x of the
run lies in the file that begins at x - x % size (`FileSequence.base_of`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import z3

from spec.proofs.claim import (
    Claim,
    Number,
    Obligation,
    Twin,
    integers,
    is_division,
    product_is_not_negative,
)

BLANK_HEAD_BYTES: Final = 8
INT32_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Room:
    """What must be left after a record for it to be written, and to be accepted at all, in a file of its own."""

    to_write: int
    to_accept: int


def record_fits(rule: Room) -> Iterable[Obligation]:
    size, wrote, length = integers("size wrote length")
    room = size - wrote
    # Where appending may stand: with as much room as the last record had to leave, or at the end of a closed file.
    stands = z3.And(wrote >= 0, z3.Or(room >= rule.to_write, room == 0))
    accepted = (length >= 1, length + rule.to_accept <= size, size <= INT32_MAX)
    fits = length + rule.to_write <= room
    after = room - length
    yield Obligation("an empty file can be closed", accepted, size >= BLANK_HEAD_BYTES)
    yield Obligation(
        "a record leaves room for a blank one",
        (*accepted, stands, fits),
        z3.And(wrote + length <= size, after >= BLANK_HEAD_BYTES),
    )
    yield Obligation(
        "a record that does not fit finds room for a blank one, or a closed file",
        (*accepted, stands, z3.Not(fits)),
        z3.Or(room == 0, z3.And(room >= BLANK_HEAD_BYTES, room <= INT32_MAX)),
    )
    yield Obligation("an accepted record fits an empty file", (*accepted, wrote == 0), fits)
    # A batch is one append of the sum: a first part that fits alone does not decide for the whole.
    first, second = integers("first second")
    parts = (first >= 1, second >= 1, length == first + second)
    yield Obligation(
        "a batch that fits leaves its parts in one file",
        (*accepted, *parts, stands, fits),
        z3.And(wrote + first + second <= size - BLANK_HEAD_BYTES, wrote + first < size),
    )


Base = Callable[[Number, Number, Number], Number]
"""(position, file size, position % file size) -> first position of its file."""


def base_of(position: Number, size: Number, inside: Number) -> Number:
    return position - inside


def files_tile_the_run(rule: Base) -> Iterable[Obligation]:
    x, y, size, number, inside, other, beyond = integers("x y size number inside other beyond")
    file_of_x = (x >= 0, size >= 1, is_division(x, size, number, inside))
    file_of_y = (y >= 0, is_division(y, size, other, beyond))
    base_x, base_y = rule(x, size, inside), rule(y, size, beyond)
    not_negative = product_is_not_negative(-number - 1, size)
    yield Obligation("a position lies in its file", file_of_x, z3.And(base_x <= x, x < base_x + size))
    yield Obligation(
        "a file begins at a multiple of the size",
        (*file_of_x, not_negative),
        z3.And(base_x == number * size, number >= 0),
    )
    one_file = (
        product_is_not_negative(other - number - 1, size),
        product_is_not_negative(number - other - 1, size),
    )
    shared = z3.And(base_x <= y, y < base_x + size)
    yield Obligation("files do not overlap", (*file_of_x, *file_of_y, *one_file, shared), base_x == base_y)
    yield Obligation(
        "behind a position is the next one of its file, or the first of the next file",
        (*file_of_x, *file_of_y, *one_file, y == x + 1),
        z3.If(
            inside + 1 == size,
            z3.And(base_y == base_x + size, y - base_y == 0),
            z3.And(base_y == base_x, y - base_y == x - base_x + 1),
        ),
    )
    length = z3.Int("length")
    room = base_x + size - x
    appended = (length >= 1, length <= room, x <= y, y < x + length)
    yield Obligation(
        "what fits the room lies in one file", (*file_of_x, *file_of_y, *one_file, *appended), base_y == base_x
    )
    yield Obligation(
        "the file behind a closed one is found by its first byte",
        (*file_of_x, *file_of_y, *one_file, y == base_x + size),
        z3.And(base_y == y, y - base_x == size),
    )


def names_are_ordered(digits: int) -> Iterable[Obligation]:
    """A name is the offset in `digits` places. Names as texts have the order of offsets when no name is longer."""
    offset = z3.Int("offset")
    yield Obligation("an offset fits its name", (offset >= 0, offset < 2**63), offset < 10**digits)


CLAIMS: Final = (
    Claim(
        "record or blank",
        "a record fits into the rest of a file, or a blank record of at least 8 bytes does",
        record_fits,
        Room(BLANK_HEAD_BYTES, BLANK_HEAD_BYTES),
        (
            Twin("nothing must be left behind a record", Room(0, 0)),
            Twin("one byte less must be left", Room(BLANK_HEAD_BYTES - 1, BLANK_HEAD_BYTES - 1)),
            Twin("a record as large as a file is accepted, as by upstream", Room(BLANK_HEAD_BYTES, 0)),
        ),
    ),
    Claim(
        "files",
        "every position has one file: no overlap, no hole",
        files_tile_the_run,
        base_of,
        (
            Twin("the base is one too low", lambda position, size, inside: position - inside - 1),
            Twin(
                "the last byte counts to the next file",
                lambda position, size, inside: z3.If(inside + 1 == size, position, position - inside),
            ),
        ),
    ),
    Claim(
        "file names",
        "20 digits hold every offset of 63 bits, so names sort like offsets",
        names_are_ordered,
        20,
        (Twin("18 digits", 18),),
    ),
)
