from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.acl.addresses import host_part, parse_address, parse_pattern
from refmq.errors import UsageError

MATCHES = [
    ("*", "10.1.2.3"),
    ("*.*.*.*", "10.1.2.3"),
    ("*:*:*:*:*:*:*:*", "::1"),
    ("10.1.2.3", "10.1.2.3"),
    ("10.1.2.3", "::ffff:10.1.2.3"),
    ("10.1.2.{3,4}", "10.1.2.4"),
    ("10.1.2.3, 10.9.9.9", "10.9.9.9"),
    ("10.10.103.*", "10.10.103.255"),
    ("10.10.*", "10.10.1.2"),
    ("10.10-12.*.*", "10.12.0.1"),
    ("10.10.1-5.*", "10.10.5.9"),
    ("1050::5:600:300c:326b", "1050:0:0:0:5:0600:300C:326B"),
    ("1050::5:600:300c:{326b,1}", "1050::5:600:300c:1"),
    ("1050:0:0:0:5:600:300c:*", "1050::5:600:300c:ffff"),
    ("fe80::1:a-b:*", "fe80::1:b:9"),
]

DIFFERS = [
    ("", "10.1.2.3"),
    ("   ", "10.1.2.3"),
    ("10.1.2.3", "10.1.2.33"),
    ("10.1.2.3", "10.1.2"),
    ("10.1.2.{3,4}", "10.1.2.5"),
    ("10.1.2.{3,4}", "10.1.2.34"),
    ("10.1.2.3,10.9.9.9", "10.1.2.9"),
    ("10.10.103.*", "10.10.104.1"),
    ("10.10.103.*", "110.10.103.1"),
    ("10.10.10.*", "10.10.103.1"),  # a comparison of prefixes would take `10.10.10` for the beginning of `10.10.103`
    ("10.*.2.3", "10.7.9.3"),
    ("10.*.5.6", "10.1.9.9"),  # upstream lets everything in that begins with 10
    ("10.10-12.*.*", "10.13.0.1"),
    ("10.10.103.*", "::1"),
    ("fe80::1:a-b:*", "fe80::1:c:9"),
    ("10.1.2.*", "nobody"),
    ("10.1.2.3", ""),
]


@pytest.mark.parametrize(("pattern", "host"), MATCHES)
def test_a_pattern_matches_its_addresses(pattern: str, host: str) -> None:
    assert parse_pattern(pattern).matches(host)


@pytest.mark.parametrize(("pattern", "host"), DIFFERS)
def test_a_pattern_matches_no_others(pattern: str, host: str) -> None:
    assert not parse_pattern(pattern).matches(host)


@pytest.mark.parametrize(
    "pattern",
    [
        "10.1.2", "10.1.2.3.4", "*.1.2.3", "1-5.2.3.4", "10.1.2.{3,4", "10.1.2{3}", "10.1.2.{}", "10.1.{2,3}.4",
        "10.1.2.256", "10.1.9-3.*", "10.1.2.-3", "10.1.2.300-400", "localhost", "10.1.*.x", ",", "10.1.*.2.3.4",
        "::*::1", "10.٣.*.*", "1:2:3:4:5:6:7:8:*",
    ],
)  # fmt: skip
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="is not a pattern of addresses"):
        parse_pattern(pattern)


def test_parts_that_are_left_out_at_the_end_are_free() -> None:
    assert parse_pattern("10.1-2").matches("10.2.250.9")


OCTETS = st.tuples(*[st.integers(0, 255)] * 4)


@given(OCTETS, st.integers(1, 3), st.data())
def test_only_free_parts_may_differ(octets: tuple[int, ...], free: int, data: st.DataObject) -> None:
    pattern = ".".join("*" if at == free else str(octet) for at, octet in enumerate(octets))
    other = data.draw(OCTETS)
    same = all(a == b for at, (a, b) in enumerate(zip(octets, other, strict=True)) if at != free)
    assert parse_pattern(pattern).matches(".".join(map(str, other))) == same


@given(st.text(max_size=40))
def test_any_text_is_a_pattern_or_refused(text: str) -> None:
    try:
        pattern = parse_pattern(text)
    except UsageError:
        return
    assert pattern.matches_all == (text.strip() in {"*", "*.*.*.*", "*:*:*:*:*:*:*:*"})


def test_the_host_is_what_stands_before_the_last_colon() -> None:
    assert host_part("10.1.2.3:99") == "10.1.2.3"
    assert host_part("[::1]:99") == "::1"
    assert parse_address("fe80::1%eth0") == parse_address("fe80::1")
    assert host_part("unknown") == ""
