"""A real broker registers at our nameserver, real clients find it there, and mqadmin hears what it always hears."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from interop.ours import OurNameserver, has_route
from interop.processes import free_port, wait_until
from interop.rocketmq import Broker, Clients, Nameserver
from interop.tests.conftest import EAGER, VERSIONS
from refmq.errors import RefmqError

REGISTER_TIMEOUT_S = 30.0  # three of the shortest periods
EXPIRY_S = 120.0
SCAN_S = 10.0


def sent_keys(lines: list[str]) -> list[str]:
    return sorted(line.split()[7] for line in lines if line.startswith("sent SEND_OK"))


def got_keys(lines: list[str]) -> list[str]:
    return sorted(line.split()[5] for line in lines if line.startswith("got "))


# Messages ----------------------------------------------------------------------------------------------------------


# The lite pull consumer of 5.3.3 sends a request that 4.9 brokers do not serve.
@pytest.mark.parametrize(
    ("version", "kind"),
    [(version, kind) for version in VERSIONS for kind in ("concurrent", "orderly")] + [("4.9.8", "lite")],
)
def test_clients_find_the_broker_and_exchange_messages(
    version: str, kind: str, clients: dict[str, Clients], ours: OurNameserver, broker: Broker
) -> None:
    topic = f"Exchange-{kind}-{version.replace('.', '_')}"
    sent = clients[version].run("Produce", ours.address, topic, "plain:20", "big:2", "commit:3")
    got = clients[version].run("Consume", ours.address, topic, f"group-{topic}", kind, "25")
    assert len(sent_keys(sent)) == 25
    assert got_keys(got) == sent_keys(sent)


@pytest.mark.parametrize("version", VERSIONS)
def test_clients_with_binary_headers_and_tls_are_served(
    version: str, clients: dict[str, Clients], ours: OurNameserver, broker: Broker
) -> None:
    jvm = ("-Drocketmq.serialize.type=ROCKETMQ",)
    topic = f"Binary-{version.replace('.', '_')}"
    sent = clients[version].run("Produce", ours.address, topic, "plain:5", jvm=jvm)
    got = clients[version].run("Consume", ours.address, topic, f"group-{topic}", "concurrent", "5", jvm=jvm)
    assert got_keys(got) == sent_keys(sent) != []
    route = clients[version].mqadmin("topicRoute", "-t", topic, "-n", ours.address, jvm=("-Dtls.enable=true",))
    assert broker.address in route


# mqadmin -----------------------------------------------------------------------------------------------------------

COMMANDS: list[list[str]] = [
    ["clusterList"],
    ["clusterList", "-m"],
    ["topicRoute", "-t", "TBW102"],
    ["topicRoute", "-t", "NoSuchTopic"],
    ["topicList"],
    ["topicClusterList", "-t", "TBW102"],
    ["updateKvConfig", "-s", "ORDER_TOPIC_CONFIG", "-k", "TBW102", "-v", "broker-a:8"],
    ["updateOrderConf", "-t", "TBW102", "-m", "get"],
    ["updateOrderConf", "-t", "NoSuchTopic", "-m", "get"],
    ["deleteKvConfig", "-s", "ORDER_TOPIC_CONFIG", "-k", "TBW102"],
    ["updateOrderConf", "-t", "TBW102", "-m", "get"],
    ["wipeWritePerm", "-b", "broker-a"],
    ["topicRoute", "-t", "SELF_TEST_TOPIC"],
    ["wipeWritePerm", "-b", "no-such-broker"],
    ["addWritePerm", "-b", "broker-a"],
    ["topicRoute", "-t", "SELF_TEST_TOPIC"],
    ["updateNamesrvConfig", "-k", "orderMessageEnable", "-v", "true"],
    ["updateNamesrvConfig", "-k", "orderMessageEnable", "-v", "false"],
]


def run_admin(clients: Clients, nameserver: str, commands: list[list[str]]) -> list[str]:
    """The output of each command, all run in one JVM."""
    arguments: list[str] = []
    for command in commands:
        arguments += ["--", *command, "-n", nameserver]
    output = clients.start("Admin", *arguments[1:])
    assert output.wait(90) == 0
    parts = re.split(r"^=== (?:\d+|end)\n", output.output(), flags=re.MULTILINE)
    assert len(parts) == len(commands) + 2
    return parts[1:-1]


def comparable(text: str, nameserver: str) -> list[str]:
    """The output without what differs from one moment or nameserver to the next; lists stand in any order."""
    text = text.replace(nameserver, "NAMESERVER")
    lines = []
    for line in text.splitlines():
        if " INFO " in line or " WARN " in line or line.strip().startswith("at "):
            continue  # the client's log, and places in its code
        if line.startswith("DefaultCluster "):
            line = " ".join(line.split()[:5])  # cluster, broker, id, address, version; then rates and times
        lines.append(line.rstrip())
    return sorted(filter(None, lines))


@pytest.mark.parametrize("version", VERSIONS)
def test_mqadmin_hears_the_same_from_both_nameservers(
    version: str, clients: dict[str, Clients], ours: OurNameserver, real: Nameserver, broker: Broker
) -> None:
    wait_until(lambda: has_route(real.address, "TBW102"), "registration", REGISTER_TIMEOUT_S)
    wait_until(lambda: has_route(ours.address, "TBW102"), "registration", REGISTER_TIMEOUT_S)
    from_ours = run_admin(clients[version], ours.address, COMMANDS)
    from_real = run_admin(clients[version], real.address, COMMANDS)
    for command, our_text, real_text in zip(COMMANDS, from_ours, from_real, strict=True):
        if command == ["topicList"] and comparable(our_text, ours.address) != comparable(real_text, real.address):
            # A broker makes topics of its own, and one may have come between the two looks: it is there by now.
            (our_text,) = run_admin(clients[version], ours.address, [command])
        assert comparable(our_text, ours.address) == comparable(real_text, real.address), command
    assert "OK, " in from_ours[COMMANDS.index(["wipeWritePerm", "-b", "broker-a"])]


def test_a_black_listed_setting_is_refused(clients: dict[str, Clients], ours: OurNameserver) -> None:
    command = ["updateNamesrvConfig", "-k", "kvConfigPath", "-v", "/tmp/anywhere", "-n", ours.address]
    said = clients["4.9.8"].mqadmin(*command)
    assert "CODE: 16" in said
    assert "Can not update config in black list." in said


# Life and death ----------------------------------------------------------------------------------------------------


def test_a_broker_that_stops_or_is_killed_is_gone_at_once_and_back_after_its_start(
    folder: Path, ours: OurNameserver
) -> None:
    broker = Broker(folder / "mortal", ours.address, "mortal", {**EAGER, "brokerClusterName": "Mortals"})
    for end in (broker.stop, broker.kill):
        broker.start()
        wait_until(lambda: has_route(ours.address, "Mortals"), "the route", REGISTER_TIMEOUT_S)
        end()
        assert not has_route(ours.address, "Mortals")


@pytest.mark.parametrize("end", [OurNameserver.stop, OurNameserver.kill], ids=["stop", "kill"])
def test_brokers_register_again_after_a_restart_of_the_nameserver(
    end: Callable[[OurNameserver], None], folder: Path, clients: dict[str, Clients]
) -> None:
    admin = clients["4.9.8"]
    nameserver = OurNameserver(folder / f"restarted-{end.__name__}").start()
    settings = {**EAGER, "brokerClusterName": "Patient"}
    with Broker(folder / f"patient-{end.__name__}", nameserver.address, "patient", settings):
        wait_until(lambda: has_route(nameserver.address, "Patient"), "the route", REGISTER_TIMEOUT_S)
        put = ["updateKvConfig", "-s", "ORDER_TOPIC_CONFIG", "-k", "T", "-v", "patient:1", "-n", nameserver.address]
        assert "success" in admin.mqadmin(*put)
        end(nameserver)
        nameserver.start()
        wait_until(lambda: has_route(nameserver.address, "Patient"), "the route", REGISTER_TIMEOUT_S)
        get = ["updateOrderConf", "-t", "T", "-m", "get", "-n", nameserver.address]
        assert "patient:1" in admin.mqadmin(*get), "the key-value configuration is kept"
    nameserver.stop()


def test_a_producer_goes_on_with_the_second_nameserver(folder: Path, clients: dict[str, Clients]) -> None:
    first, second = OurNameserver(folder / "first").start(), OurNameserver(folder / "second").start()
    both = f"{first.address};{second.address}"
    with Broker(folder / "of-two", both, "of-two", EAGER):
        for version in VERSIONS:
            assert sent_keys(clients[version].run("Produce", both, "OfTwo", "plain:3"))
        first.kill()

        def sent(version: str) -> bool:
            try:
                return bool(sent_keys(clients[version].run("Produce", both, "OfTwo", "plain:3")))
            except RefmqError:
                return False  # on a busy machine a client may ask the dead one until its send is too late

        for version in VERSIONS:
            wait_until(lambda version=version: sent(version), "a send by the second", 4 * REGISTER_TIMEOUT_S)  # type: ignore[misc]
        got = clients["4.9.8"].run("Consume", both, "OfTwo", "of-two", "concurrent", "12")
        assert len(got_keys(got)) >= 12
    second.stop()


@pytest.mark.slow
def test_a_silent_broker_expires_at_both_nameservers_in_the_same_window(
    folder: Path, ours: OurNameserver, real: Nameserver
) -> None:
    port = free_port((-2, 0, 1))
    settings = {**EAGER, "brokerClusterName": "Silent"}
    broker = Broker(folder / "silent", f"{ours.address};{real.address}", "silent", settings, port=port).start()
    addresses = (ours.address, real.address)
    for address in addresses:
        wait_until(partial(has_route, address, "Silent"), "the route", REGISTER_TIMEOUT_S)
    broker.pause()
    paused = time.monotonic()
    gone: dict[str, float] = {}
    while len(gone) < 2 and time.monotonic() - paused < EXPIRY_S + 4 * SCAN_S:
        for address in addresses:
            if address not in gone and not has_route(address, "Silent"):
                gone[address] = time.monotonic() - paused
        time.sleep(0.2)
    assert set(gone) == set(addresses), gone
    # The last registration was up to ten seconds before the pause, the scan comes up to ten seconds late.
    for seconds in gone.values():
        assert EXPIRY_S - SCAN_S - 2 <= seconds <= EXPIRY_S + SCAN_S + 5, gone
    broker.resume()
    for address in addresses:
        wait_until(partial(has_route, address, "Silent"), "the route", 2 * REGISTER_TIMEOUT_S)
    broker.stop()
