"""The index file: slots and entries stay inside it, and every chain comes to an end.

    40 bytes of header | 4 bytes for each slot | 20 bytes for each entry place, of which number 0 is never used

The hash of a key is Java's `abs` of a signed number of 32 bits, with 0 for -2^31, which has no positive twin. The slot
is the hash modulo the number of slots; entry `following` is the next one to be written, and the file is full when
`following` has reached the number of entry places (`IndexFile`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import z3

from spec.proofs.claim import Claim, Number, Obligation, Truth, Twin, integers, is_division

HEADER_BYTES: Final = 40
SLOT_BYTES: Final = 4
ENTRY_BYTES: Final = 20
INT32_MAX: Final = 2**31 - 1
BITS: Final = 32
WIDE_BITS: Final = 64


def java_absolute(value: z3.BitVecRef) -> z3.BitVecRef:
    """`Math.abs` of an int: -2^31 stays as it is."""
    return z3.If(value < 0, -value, value)


def java_key_hash(value: z3.BitVecRef) -> z3.BitVecRef:
    """What Java stores: `abs`, and 0 for what is still negative."""
    absolute = java_absolute(value)
    return z3.If(absolute < 0, z3.BitVecVal(0, BITS), absolute)


def _bitwise_complement(value: z3.BitVecRef) -> z3.BitVecRef:
    return z3.If(value < 0, ~value, value)


def hash_is_in_range(rule: Callable[[z3.BitVecRef], z3.BitVecRef]) -> Iterable[Obligation]:
    value = z3.BitVec("value", BITS)
    hashed = rule(value)
    yield Obligation("a hash is not negative", (), hashed >= 0)
    # Ours computes with integers of any size; 64 bits are enough for all that can occur.
    wide = z3.SignExt(WIDE_BITS - BITS, value)
    absolute = z3.If(wide < 0, -wide, wide)
    ours = z3.If(absolute > INT32_MAX, z3.BitVecVal(0, WIDE_BITS), absolute)
    yield Obligation("ours and Java's are the same number", (), ours == z3.SignExt(WIDE_BITS - BITS, hashed))
    slots, quotient, remainder = integers("slots quotient remainder")
    divided = (
        slots >= 1,
        slots <= INT32_MAX,
        is_division(z3.BV2Int(hashed, is_signed=True), slots, quotient, remainder),
    )
    # The sign of a remainder is that of the number in Java.
    slot = z3.If(z3.And(hashed < 0, remainder > 0), remainder - slots, remainder)
    at = HEADER_BYTES + SLOT_BYTES * slot
    slots_end = HEADER_BYTES + SLOT_BYTES * slots
    yield Obligation(
        "a slot lies between the header and the entries",
        divided,
        z3.And(at >= HEADER_BYTES, at + SLOT_BYTES <= slots_end),
    )


@dataclass(frozen=True, slots=True)
class Places:
    """When a file is full, by the next entry and the number of places, and how far entries are apart."""

    is_full: Callable[[Number, Number], Truth]
    apart: int = ENTRY_BYTES


def entries_are_in_range(rule: Places) -> Iterable[Obligation]:
    slots, places, following, other = integers("slots places following other")
    sizes = (slots >= 1, places >= 1)
    counted = (following >= 1, following <= places)

    def at(number: Number) -> Number:
        return HEADER_BYTES + SLOT_BYTES * slots + rule.apart * number

    put = (*sizes, *counted, z3.Not(rule.is_full(following, places)))
    file_bytes = HEADER_BYTES + SLOT_BYTES * slots + ENTRY_BYTES * places
    yield Obligation(
        "an entry lies behind the slots and inside the file",
        put,
        z3.And(at(following) >= HEADER_BYTES + SLOT_BYTES * slots, at(following) + ENTRY_BYTES <= file_bytes),
    )
    yield Obligation("the count stays in range", put, z3.And(following + 1 >= 1, following + 1 <= places))
    yield Obligation(
        "entries do not overlap",
        (*put, other >= 1, other < following),
        at(other) + ENTRY_BYTES <= at(following),
    )
    yield Obligation(
        "a file takes exactly one entry less than its places",
        (*sizes, *counted),
        rule.is_full(following, places) == (following == places),
    )


Previous = Callable[[Number, Number], Number]
"""(what the slot holds, number of the new entry) -> what the new entry leads on to."""


def previous_entry(slot_value: Number, number: Number) -> Number:
    return z3.If(z3.And(slot_value > 0, slot_value < number), slot_value, 0)


def _as_upstream(slot_value: Number, number: Number) -> Number:
    """Upstream lets a slot hold the number that is about to be given; its readers look for an entry of itself."""
    return z3.If(z3.And(slot_value > 0, slot_value <= number), slot_value, 0)


def chains_end(rule: Previous) -> Iterable[Obligation]:
    slot, number, any_slot, any_entry = integers("slot number any_slot any_entry")
    slots = z3.Array("slots", z3.IntSort(), z3.IntSort())
    previous = z3.Array("previous", z3.IntSort(), z3.IntSort())

    def slot_is_sound(values: z3.ArrayRef, at: Number, following: Number) -> Truth:
        return z3.And(values[at] >= 0, values[at] < following)

    def entry_is_sound(values: z3.ArrayRef, at: Number, following: Number) -> Truth:
        return z3.Implies(z3.And(at >= 1, at < following), z3.And(values[at] >= 0, values[at] < at))

    leads_on = rule(slots[slot], number)
    yield Obligation(
        "a new entry leads to an older one or to none, whatever the slot holds",
        (number >= 1,),
        z3.And(leads_on >= 0, leads_on < number),
    )
    slots_after = z3.Store(slots, slot, number)
    previous_after = z3.Store(previous, number, leads_on)
    before = (
        number >= 1,
        slot_is_sound(slots, any_slot, number),
        slot_is_sound(slots, slot, number),
        entry_is_sound(previous, any_entry, number),
    )
    yield Obligation(
        "after a put, every slot is below the count and every entry leads to an older one",
        before,
        z3.And(
            slot_is_sound(slots_after, any_slot, number + 1),
            entry_is_sound(previous_after, any_entry, number + 1),
        ),
    )
    yield Obligation("a put loses no entry of its slot", before, leads_on == slots[slot])


def positions_fit_32_bits(file_bytes_max: int) -> Iterable[Obligation]:
    """Upstream computes positions in an index file with 32 bits, which is right as long as the file is small enough."""
    slots, places, number, slot = (z3.BitVec(name, BITS) for name in ("slots", "places", "number", "slot"))

    def wide(value: z3.BitVecRef) -> z3.BitVecRef:
        return z3.ZeroExt(WIDE_BITS - BITS, value)

    file_bytes = HEADER_BYTES + SLOT_BYTES * wide(slots) + ENTRY_BYTES * wide(places)
    sizes = (slots > 0, places > 0, z3.ULE(file_bytes, file_bytes_max))
    at = HEADER_BYTES + SLOT_BYTES * slots + ENTRY_BYTES * number
    at_wide = HEADER_BYTES + SLOT_BYTES * wide(slots) + ENTRY_BYTES * wide(number)
    yield Obligation(
        "the place of an entry does not wrap around",
        (*sizes, number >= 0, number < places),
        z3.And(at >= 0, wide(at) == at_wide),
    )
    slot_at = HEADER_BYTES + SLOT_BYTES * slot
    yield Obligation(
        "the place of a slot does not wrap around",
        (*sizes, slot >= 0, slot < slots),
        z3.And(slot_at >= 0, wide(slot_at) == HEADER_BYTES + SLOT_BYTES * wide(slot)),
    )


CLAIMS: Final = (
    Claim(
        "index slot",
        "the hash is Java's and not negative, -2^31 included, and its slot lies in the file",
        hash_is_in_range,
        java_key_hash,
        (
            Twin("abs alone, which leaves -2^31 negative", java_absolute),
            Twin("the complement in place of the negative", _bitwise_complement),
        ),
    ),
    Claim(
        "index entry",
        "an entry lies behind the slots, inside the file, and on no other entry, at every count",
        entries_are_in_range,
        Places(lambda following, places: following >= places),
        (
            Twin("full one entry too late", Places(lambda following, places: following > places)),
            Twin("full one entry too early", Places(lambda following, places: following >= places - 1)),
            Twin("entries are 16 bytes apart", Places(lambda following, places: following >= places, 16)),
        ),
    ),
    Claim(
        "index chain",
        "a chain leads from newer to older entries, so it ends, whatever the slots held before",
        chains_end,
        previous_entry,
        (
            Twin("an entry may lead to itself, as upstream's bound allows", _as_upstream),
            Twin("the slot is read after it was written", lambda slot_value, number: number),
            Twin("what the slot holds is not looked at", lambda slot_value, number: slot_value),
        ),
    ),
    Claim(
        "index 32 bits",
        "positions computed with 32 bits are right in a file of less than 2^31 bytes",
        positions_fit_32_bits,
        INT32_MAX,
        (Twin("a file of up to 2^32 bytes", 2**32),),
    ),
)
