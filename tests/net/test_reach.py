from __future__ import annotations

import pytest

from refmq.net.reach import advertised_host, is_everywhere, is_loopback, open_door, unreachable


@pytest.mark.parametrize(
    ("host", "loopback", "everywhere"),
    [
        ("127.0.0.1", True, False), ("127.9.9.9", True, False), ("::1", True, False), ("[::1]", True, False),
        ("localhost", True, False), ("0.0.0.0", False, True), ("::", False, True), ("", False, True),
        ("10.1.2.3", False, False), ("example.org", False, False),
    ],
)  # fmt: skip
def test_what_an_address_means(host: str, loopback: bool, everywhere: bool) -> None:
    assert (is_loopback(host), is_everywhere(host)) == (loopback, everywhere)


def test_a_broker_registers_where_it_listens() -> None:
    assert advertised_host("10.1.2.3", "10.9.9.9:9876") == "10.1.2.3"
    assert advertised_host("127.0.0.1", "10.9.9.9:9876") == "127.0.0.1"
    assert advertised_host("[::1]", "") == "::1"


def test_a_broker_that_listens_everywhere_registers_the_address_on_the_way_to_its_nameserver() -> None:
    assert advertised_host("0.0.0.0", "127.0.0.1:9876") == "127.0.0.1"
    assert advertised_host("0.0.0.0", "nonsense;127.0.0.1:9876") == "127.0.0.1"
    assert not is_everywhere(advertised_host("0.0.0.0", ""))


def test_an_open_door_is_said() -> None:
    said = open_door("broker", "0.0.0.0", 10911, demands=None)
    assert said is not None
    assert "anybody who reaches 0.0.0.0:10911" in said
    assert open_door("broker", "0.0.0.0", 10911, demands="an account") is None
    assert open_door("broker", "127.0.0.1", 10911, demands=None) is None


def test_an_address_where_nobody_is_found_is_said() -> None:
    assert "listens on 127.0.0.1 only" in (unreachable("127.0.0.1", "10.1.2.3") or "")
    assert "will not find the broker" in (unreachable("0.0.0.0", "127.0.0.1") or "")
    assert unreachable("0.0.0.0", "10.1.2.3") is None
    assert unreachable("127.0.0.1", "127.0.0.1") is None
