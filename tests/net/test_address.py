"""Addresses as RocketMQ writes them."""

from __future__ import annotations

import pytest

from refmq.errors import UsageError
from refmq.net.address import format_address, format_peer, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:9876", ("127.0.0.1", 9876)),
        (" broker-a:1 ", ("broker-a", 1)),
        ("h:65535", ("h", 65535)),
        ("[::1]:9876", ("::1", 9876)),
    ],
)
def test_an_address_is_parsed_and_formatting_gives_it_back(text: str, address: tuple[str, int]) -> None:
    assert parse_address(text) == address
    assert format_address(*address) == text.strip()


@pytest.mark.parametrize("text", ["", "host", ":9876", "host:", "host:0", "host:65536", "host:-1", "host:٣", "host:9x"])
def test_anything_else_is_refused_and_quoted(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_address(text)
    assert repr(text) in str(caught.value)


def test_a_peer_is_named_even_when_its_transport_has_no_address() -> None:
    assert format_peer(("10.0.0.1", 80)) == "10.0.0.1:80"
    assert format_peer(("::1", 80, 0, 0)) == "[::1]:80"
    assert format_peer("/run/socket") == "/run/socket"
    assert format_peer(None) == "unknown"
