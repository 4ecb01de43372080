"""Patterns of addresses, as `plain_acl.yml` writes them.

    pattern                     matches
    --------------------------  ------------------------------------------------------------------
    (blank)                     nothing
    `*` `*.*.*.*` `*:*:...`     every address
    `10.1.2.3` `::1`            that address
    `10.1.2.{3,4}`              each of the set; also for the last group of IPv6
    `10.1.2.3,10.9.9.9`         each address of the list
    `10.1.*` `10.1.2-5.*`       octets that are free or in a range, from the second on; likewise for IPv6

Upstream looks no further than the first octet that is `*` or a range: there `10.*.5.6` lets in all of `10.`. Here what
follows is compared as well, and only octets that were left out at the end are free. An address that cannot be read
matches nothing but the patterns for every address.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from refmq.errors import UsageError

EVERYTHING: Final = frozenset({"*", "*.*.*.*", "*:*:*:*:*:*:*:*"})
LIST_MAX: Final = 10_000
"""The most addresses of one pattern."""

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class AddressPattern:
    """One pattern. Which of the fields counts is decided by `parse_pattern`."""

    text: str
    matches_all: bool = False
    among: frozenset[Address] = frozenset()
    ranges: tuple[tuple[int, int], ...] = ()
    """The bounds of each octet (four) or group (eight)."""

    def matches(self, host: str) -> bool:
        """Whether a peer with this address, without its port, is meant."""
        if self.matches_all:
            return True
        if not self.among and not self.ranges:
            return False
        address = _known(host)
        if address is None:
            return False
        if address in self.among:
            return True
        parts = _parts(address)
        return len(parts) == len(self.ranges) and all(
            low <= part <= high for part, (low, high) in zip(parts, self.ranges, strict=True)
        )


def parse_pattern(text: str) -> AddressPattern:
    """`UsageError` for what is no pattern."""
    pattern = text.strip()
    if not pattern:
        return AddressPattern(text)
    if pattern in EVERYTHING:
        return AddressPattern(text, matches_all=True)
    if "{" in pattern:
        return AddressPattern(text, among=frozenset(_each(part, text) for part in _set_members(pattern)))
    if "," in pattern:
        members = [part.strip() for part in pattern.split(",") if part.strip()]
        return AddressPattern(text, among=frozenset(_each(part, text) for part in _bounded(members, text)))
    if "*" in pattern or "-" in pattern:
        return AddressPattern(text, ranges=_ranges(pattern))
    return AddressPattern(text, among=frozenset({_each(pattern, text)}))


def parse_address(text: str) -> Address | None:
    """An address, or None. One of IPv4 inside IPv6 (a socket that takes both) is the IPv4 address."""
    try:
        address = ipaddress.ip_address(text.strip().removeprefix("[").removesuffix("]").partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


_known: Final = lru_cache(maxsize=1024)(parse_address)
"""A peer sends many requests."""


def host_part(peer: str) -> str:
    """The address of a peer that is written `host:port`."""
    return peer.rpartition(":")[0].removeprefix("[").removesuffix("]")


def _parts(address: Address) -> tuple[int, ...]:
    packed = address.packed
    if len(packed) == 4:
        return tuple(packed)
    return tuple(int.from_bytes(packed[at : at + 2], "big") for at in range(0, 16, 2))


def _each(part: str, text: str) -> Address:
    address = parse_address(part)
    if address is None:
        raise UsageError(f"{text[:80]!r} is not a pattern of addresses: {part[:60]!r} is no address")
    return address


def _bounded(members: list[str], text: str) -> list[str]:
    if not members or len(members) > LIST_MAX:
        raise UsageError(f"{text[:80]!r} is not a pattern of addresses: a list has 1 to {LIST_MAX} of them")
    return members


def _set_members(pattern: str) -> list[str]:
    head, _, rest = pattern.partition("{")
    inside, closing, tail = rest.partition("}")
    if not closing or tail.strip() or not head.endswith((".", ":")):
        raise UsageError(f"{pattern[:80]!r} is not a pattern of addresses: a set {{a,b}} stands at the end")
    return _bounded([head + member.strip() for member in inside.split(",") if member.strip()], pattern)


def _ranges(pattern: str) -> tuple[tuple[int, int], ...]:
    is_v6 = ":" in pattern
    count, highest, separator = (8, 0xFFFF, ":") if is_v6 else (4, 0xFF, ".")
    parts = _expanded(pattern) if is_v6 else pattern.split(separator)
    if len(parts) > count or "*" in parts[0] or "-" in parts[0]:
        raise UsageError(f"{pattern[:80]!r} is not a pattern of addresses: `*` and ranges begin with the second part")
    if len(parts) < count and not ("*" in parts[-1] or "-" in parts[-1]):
        raise UsageError(f"{pattern[:80]!r} is not a pattern of addresses: it ends too early")
    given = [_range(part.strip(), highest, 16 if is_v6 else 10, pattern) for part in parts]
    return (*given, *[(0, highest)] * (count - len(given)))


def _expanded(pattern: str) -> list[str]:
    """The groups of an IPv6 pattern, with those that `::` stands for."""
    head, doubled, tail = pattern.partition("::")
    before, after = ([part for part in half.split(":") if part] for half in (head, tail))
    missing = 8 - len(before) - len(after)
    if not doubled:
        return before
    if missing < 1 or "::" in tail:
        raise UsageError(f"{pattern[:80]!r} is not a pattern of addresses")
    return [*before, *["0"] * missing, *after]


def _range(part: str, highest: int, base: int, pattern: str) -> tuple[int, int]:
    if part == "*":
        return 0, highest
    low, dash, high = part.partition("-")
    try:
        bounds = (_number(low, base), _number(high if dash else low, base))
    except ValueError:
        bounds = (1, 0)
    if not 0 <= bounds[0] <= bounds[1] <= highest:
        raise UsageError(f"{pattern[:80]!r} is not a pattern of addresses: {part[:20]!r} is no part of one")
    return bounds


def _number(text: str, base: int) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isalnum() and len(digits) <= 4):
        raise ValueError(text)
    return int(digits, base)
