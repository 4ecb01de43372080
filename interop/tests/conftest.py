"""Fixtures of the interop tests. Without a JDK or Maven the run ends with one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.artifacts import require_tools
from interop.jvm import Jvm
from interop.ours import OurNameserver
from interop.rocketmq import Broker, Clients, Nameserver
from interop.scene import Cluster, Scene, scene
from refmq.errors import MissingTool

VERSIONS = ("4.9.8", "5.3.3")

# The shortest period that a broker accepts: it registers again soon after a nameserver restarted.
EAGER = {"registerNameServerPeriod": "10000"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--broker",
        choices=("ours", "real"),
        default="ours",
        help="whom the clients are tried against; `real` shows that the cases themselves are right",
    )
    parser.addoption("--histories", type=int, default=200, help="how many differential histories of brokers to run")


def pytest_configure(config: pytest.Config) -> None:
    try:
        require_tools()
    except MissingTool as missing:
        pytest.exit(f"the interop tests cannot run: {missing}", returncode=1)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("interop")


@pytest.fixture(scope="session")
def clients(folder: Path) -> dict[str, Clients]:
    return {version: Clients(version, folder / f"clients-{version}") for version in VERSIONS}


@pytest.fixture(scope="module")
def ours(folder: Path) -> Iterator[OurNameserver]:
    with OurNameserver(folder / "ours") as nameserver:
        yield nameserver


@pytest.fixture(scope="module")
def real(folder: Path) -> Iterator[Nameserver]:
    with Nameserver(folder / "real") as nameserver:
        yield nameserver


@pytest.fixture(scope="module")
def broker(folder: Path, ours: OurNameserver, real: Nameserver) -> Iterator[Broker]:
    """A real broker that is registered at both nameservers, so that their answers can be compared."""
    with Broker(folder / "broker", f"{ours.address};{real.address}", settings=EAGER) as started:
        yield started


# Tests of clients: one cluster and one JVM of each version for all of them ------------------------------------------


@pytest.fixture(scope="session")
def cluster(folder: Path, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """Two masters."""
    with Cluster(folder / "cluster", real=pytestconfig.getoption("--broker") == "real") as started:
        yield started


@pytest.fixture(scope="session")
def jvms(clients: dict[str, Clients]) -> Iterator[dict[str, Jvm]]:
    started: dict[str, Jvm] = {}
    try:
        for version in VERSIONS:
            started[version] = Jvm(clients[version]).start()
        yield started
    finally:
        for jvm in started.values():
            jvm.stop()


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def on(request: pytest.FixtureRequest, cluster: Cluster, jvms: dict[str, Jvm], version: str) -> Iterator[Scene]:
    """The scene of a test: clients of one version on the common cluster."""
    tag = re.sub(r"\W+", "-", request.node.name.removeprefix("test_")).strip("-")
    with scene(cluster, jvms[version], tag[-100:]) as current:
        yield current
