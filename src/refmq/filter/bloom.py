"""The Bloom filter that lets a queue unit say "this expression cannot match".

For each consumer group and topic `k` bit positions are fixed. When a message is dispatched, every expression
that it satisfies sets its bits in a bitmap stored in the consume queue extension; a pull skips the units whose
bitmap lacks one of its bits.

    name           value             meaning
    error_percent  20                chance that a foreign bitmap has all our bits
    groups_max     32                groups for which that holds
    hash_count k   ceil(log0.5(f))   3
    bit_count m    multiple of 8     112 bits, 14 bytes

Positions of a key: the first 64 bits of murmur3-128 (x64, seed 0, little-endian) give two 32-bit numbers h1
(low) and h2 (high); position i (1..k) is h1 + i*h2 wrapped to 32 bits, complemented when negative, modulo m.
Bit p is byte p//8, mask 1 << (p % 8).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

_MASK64 = 0xFFFF_FFFF_FFFF_FFFF
_C1 = 0x87C37B91114253D5
_C2 = 0x4CF5AD432745937F


@dataclass(frozen=True, slots=True)
class BloomFilter:
    """The shape of the filter; the bitmaps are plain bytes."""

    hash_count: int
    bit_count: int

    def __post_init__(self) -> None:
        assert self.hash_count >= 1, "an expression without bits would never be ruled out"
        assert self.bit_count >= 8 and self.bit_count % 8 == 0, "a bitmap is whole bytes"

    @classmethod
    def for_groups(cls, error_percent: int = 20, groups_max: int = 32) -> BloomFilter:
        """The shape for a wanted error rate and number of groups (`maxErrorRateOfBloomFilter` ...)."""
        assert 1 <= error_percent < 100
        assert groups_max >= 1
        hash_count = math.ceil(math.log(error_percent / 100) / math.log(0.5))
        bits = math.ceil(groups_max * math.log2(100 / error_percent) * math.log2(math.e))
        return cls(hash_count, (bits + 7) // 8 * 8)

    @property
    def byte_count(self) -> int:
        return self.bit_count // 8

    def positions(self, key: str) -> tuple[int, ...]:
        """The bits of `group#topic`."""
        first = _murmur3_first64(key.encode())
        low, high = first & 0xFFFFFFFF, first >> 32
        found = []
        for i in range(1, self.hash_count + 1):
            combined = (low + i * high) & 0xFFFFFFFF
            if combined & 0x8000_0000:
                combined ^= 0xFFFF_FFFF
            found.append(combined % self.bit_count)
        return tuple(found)

    def bitmap(self, positions: tuple[int, ...], onto: bytes | None = None) -> bytes:
        """`onto` (or an empty bitmap) with the given bits set."""
        assert onto is None or len(onto) == self.byte_count, "bits of one shape do not go onto another"
        assert all(0 <= position < self.bit_count for position in positions), "a bit of another shape"
        bits = bytearray(onto) if onto is not None else bytearray(self.byte_count)
        for position in positions:
            bits[position // 8] |= 1 << (position % 8)
        return bytes(bits)

    def contains(self, bitmap: bytes, positions: tuple[int, ...]) -> bool:
        """Whether all bits are set. A bitmap of another shape says nothing, so it contains everything."""
        if len(bitmap) != self.byte_count:
            return True
        return all(bitmap[p // 8] & (1 << (p % 8)) for p in positions)


def _rotate(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _MASK64


def _mix_k1(k1: int) -> int:
    return _rotate(k1 * _C1 & _MASK64, 31) * _C2 & _MASK64


def _mix_k2(k2: int) -> int:
    return _rotate(k2 * _C2 & _MASK64, 33) * _C1 & _MASK64


def _finish(value: int) -> int:
    value ^= value >> 33
    value = value * 0xFF51AFD7ED558CCD & _MASK64
    value ^= value >> 33
    value = value * 0xC4CEB9FE1A85EC53 & _MASK64
    return value ^ (value >> 33)


def _murmur3_first64(data: bytes) -> int:
    """The first half of murmur3-128 for x64 with seed 0, as a little-endian number."""
    h1 = h2 = 0
    whole = len(data) // 16 * 16
    for start in range(0, whole, 16):
        h1 ^= _mix_k1(int.from_bytes(data[start : start + 8], "little"))
        h1 = ((_rotate(h1, 27) + h2) * 5 + 0x52DCE729) & _MASK64
        h2 ^= _mix_k2(int.from_bytes(data[start + 8 : start + 16], "little"))
        h2 = ((_rotate(h2, 31) + h1) * 5 + 0x38495AB5) & _MASK64
    tail = data[whole:]
    if len(tail) > 8:
        h2 ^= _mix_k2(int.from_bytes(tail[8:], "little"))
    if tail:
        h1 ^= _mix_k1(int.from_bytes(tail[:8], "little"))
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = (h1 + h2) & _MASK64
    h2 = (h2 + h1) & _MASK64
    h1, h2 = _finish(h1), _finish(h2)
    return (h1 + h2) & _MASK64
