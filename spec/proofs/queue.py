"""Consume queues: a unit of 20 bytes never crosses a file.

Unit q is at byte 20 * q of a run of files whose size is a multiple of 20 (`ConsumeQueue`, `StoreConfig`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import z3

from spec.proofs.claim import Claim, Obligation, Twin, integers, is_division, product_is_not_negative, smaller

UNIT_BYTES: Final = 20


def units_stay_in_one_file(surplus: int) -> Iterable[Obligation]:
    """`surplus` is what a file has beside whole units: 0 in the rule."""
    unit, per_file, file_number, inside = integers("unit per_file file_number inside")
    size = UNIT_BYTES * per_file + surplus
    at = UNIT_BYTES * unit
    base = file_number * size
    placed = (unit >= 0, per_file >= 1, is_division(at, size, file_number, inside))
    # That the place of a unit in its file is a multiple of 20 is divisibility by a constant, but of a product.
    product = z3.Int("product")
    counted = (product == file_number * per_file, base == UNIT_BYTES * product + file_number * surplus)
    yield Obligation("a unit lies in one file", (*placed, *counted), inside + UNIT_BYTES <= size)
    yield Obligation(
        "a unit's place in its file is its number there",
        (*placed, *counted),
        z3.And(inside == UNIT_BYTES * (unit - product), unit - product >= 0, unit - product < per_file),
    )
    next_file, next_inside = integers("next_file next_inside")
    following = (
        is_division(at + UNIT_BYTES, size, next_file, next_inside),
        product_is_not_negative(next_file - file_number - 1, size),
        product_is_not_negative(file_number - next_file - 1, size),
        product_is_not_negative(next_file - file_number - 2, size),
    )
    yield Obligation(
        "the next unit is behind it, or first in the next file",
        (*placed, *counted, *following),
        z3.Or(
            z3.And(next_file == file_number, next_inside == inside + UNIT_BYTES),
            z3.And(next_file == file_number + 1, next_inside == 0),
        ),
    )
    # `read_units`: as many as asked for, to the end of the file, to the end of the queue.
    count, end = integers("count end")
    read = (count >= 1, end > unit)
    length = smaller(smaller(count * UNIT_BYTES, base + size - at), UNIT_BYTES * end - at)
    yield Obligation(
        "what is read at once is whole units of one file",
        (*placed, *counted, *read),
        z3.And(length >= UNIT_BYTES, inside + length <= size, length % UNIT_BYTES == 0),
    )


CLAIMS: Final = (
    Claim(
        "queue unit",
        "a unit of 20 bytes lies in one file when the file size is a multiple of 20",
        units_stay_in_one_file,
        0,
        (Twin("a file of whole units and one byte", 1), Twin("a file of whole units and half a unit", 10)),
    ),
)
