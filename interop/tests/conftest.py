"""Fixtures of the interop tests. Without a JDK or Maven the run ends with one line.

Everything that is started ends with the run and everything that is written is removed, whether the run passes, fails
or is interrupted by Ctrl-C or SIGTERM; ``--keep FOLDER`` leaves logs and stores there.
"""

from __future__ import annotations

import itertools
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from interop import ours as our_servers
from interop.artifacts import require_tools
from interop.jvm import Jvm
from interop.ours import OurNameserver
from interop.prepare import prepare
from interop.processes import stop_all
from interop.rocketmq import Broker, Clients, Nameserver
from interop.scene import Cluster, Scene, scene
from refmq.errors import MissingTool, RefmqError

VERSIONS = ("4.9.8", "5.3.3")

OTHER_CLIENTS = ("test_other_clients", "test_go_client")
LOG_LINES_SHOWN = 12
REMOVALS_MAX = 25

_folder: Path | None = None
_numbers = itertools.count(1)

# The shortest period that a broker accepts: it registers again soon after a nameserver restarted.
EAGER = {"registerNameServerPeriod": "10000"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--broker",
        choices=("ours", "real"),
        default="ours",
        help="whom the clients are tried against; `real` shows that the cases themselves are right",
    )
    parser.addoption(
        "--engine", choices=("auto", "reference", "fast"), default="auto", help="which engine our brokers run on"
    )
    parser.addoption(
        "--guarded",
        action="store_true",
        help="our brokers have access control on, and let this machine in by its address",
    )
    parser.addoption("--histories", type=int, default=60, help="how many differential histories of brokers to run")
    parser.addoption("--keep", type=Path, help="a new folder for logs and stores, which is not removed at the end")


def pytest_configure(config: pytest.Config) -> None:
    our_servers.chosen_engine = config.getoption("--engine")
    our_servers.guards_all = config.getoption("--guarded")
    try:
        require_tools()
    except MissingTool as missing:
        pytest.exit(f"the interop tests cannot run: {missing}", returncode=1)

    def end(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt  # as Ctrl-C: fixtures are torn down, processes ended, folders removed

    signal.signal(signal.SIGTERM, end)


def pytest_sessionstart(session: pytest.Session) -> None:
    """With several processes (pytest -n 2) the first one fetches and builds before it starts the others."""
    if session.config.getoption("numprocesses", None) and not session.config.option.collectonly:
        make_ready(session.config, others=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetch and build before the first test, and say so: inside a test it would look like a hang."""
    alone = not session.config.getoption("numprocesses", None) and not hasattr(session.config, "workerinput")
    if alone and session.items and not session.config.option.collectonly:
        others = any(Path(item.path).stem.startswith(OTHER_CLIENTS) for item in session.items)
        make_ready(session.config, others=others)


def make_ready(config: pytest.Config, *, others: bool) -> None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    assert reporter is not None

    def say(line: str) -> None:
        reporter.ensure_newline()
        reporter.write_line(line)

    try:
        prepare(say, others=others)
    except RefmqError as error:
        pytest.exit(f"the interop tests cannot run: {error}", returncode=1)


_began = pytest.StashKey[float]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the end of every log that was written during a test that fails: the files themselves are removed."""
    if call.when == "setup":
        item.stash[_began] = call.start
    report = yield
    if report.failed and _folder is not None:
        for log in sorted([*_folder.rglob("*.out"), *_folder.rglob("driver-*.log")]):
            if log.stat().st_mtime >= item.stash.get(_began, 0.0) and log.stat().st_size:
                lines = log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
                report.sections.append((f"end of {log.relative_to(_folder)}", "\n".join(lines)))
    return report


def pytest_unconfigure(config: pytest.Config) -> None:
    stop_all()
    if _folder is None or config.getoption("--keep") is not None or hasattr(config, "workerinput"):
        return
    for _ in range(REMOVALS_MAX):  # a process that is being killed may write a last file
        shutil.rmtree(_folder, ignore_errors=True)
        if not _folder.exists():
            return
        time.sleep(0.2)


def run_folder(config: pytest.Config) -> Path:
    """Where this run writes; removed at its end by the process that made it."""
    global _folder
    if _folder is None:
        keep = config.getoption("--keep")
        _folder = Path(keep).absolute() if keep is not None else Path(tempfile.mkdtemp(prefix="refmq-interop-"))
        _folder.mkdir(parents=True, exist_ok=keep is None)
    return _folder


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Each of several processes writes into a folder of its own inside that of the run."""
    node.workerinput["interop_folder"] = str(run_folder(node.config) / node.gateway.id)


@pytest.fixture(scope="session")
def folder(pytestconfig: pytest.Config) -> Path:
    global _folder
    mine = getattr(pytestconfig, "workerinput", {}).get("interop_folder")
    if mine is None:
        return run_folder(pytestconfig)
    _folder = Path(mine)
    _folder.mkdir()
    return _folder


@pytest.fixture
def tmp_path(folder: Path, request: pytest.FixtureRequest) -> Path:
    """A folder of one test, in the place of pytest's own, which stays for several runs."""
    name = re.sub(r"\W+", "-", request.node.name)[:60]
    path = folder / "tests" / f"{next(_numbers)}-{name}"
    path.mkdir(parents=True)
    return path


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
