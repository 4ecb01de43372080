"""Addresses between text and the bytes that records hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.model.ids import HostAddress
from refmq.protocol.host_address import host_of, host_text, is_ip

ADDRESSES = st.builds(
    HostAddress, st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16), st.integers(0, 65535)
)


@given(ADDRESSES)
def test_an_address_comes_back_from_its_text(address: HostAddress) -> None:
    assert host_of(host_text(address)) == address


def test_the_text_is_what_clients_see() -> None:
    assert host_text(HostAddress(bytes([10, 0, 0, 1]), 10911)) == "10.0.0.1:10911"
    assert host_text(HostAddress(bytes(15) + b"\1", 10911)) == "[::1]:10911"


@pytest.mark.parametrize("text", ["broker-a:10911", "10.0.0.1", "10.0.0.1:x", ""])
def test_what_only_a_resolver_would_know_is_nowhere(text: str) -> None:
    assert host_of(text) == HostAddress(bytes(4), 0)


def test_an_ip_is_told_from_a_name() -> None:
    assert is_ip("127.0.0.1")
    assert is_ip("::1")
    assert is_ip("[::1]")
    assert not is_ip("localhost")
    assert not is_ip("127.0.0.1:80")
