"""The pytest plugin, as a user's test run sees it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

USED = """
import pytest

def test_good(refmq):
    refmq.topic("Orders")
    refmq.send("Orders", b"x")
    assert refmq.messages("Orders").bodies() == [b"x"]

def test_isolated(refmq):
    assert refmq.messages("Orders").bodies() == []

def test_session(refmq_session):
    refmq_session.send("Shared", b"1")

def test_session_again(refmq_session):
    assert refmq_session.messages("Shared").bodies() == [b"1"]
"""

FAILS = """
from refmq import sync

def test_bad(refmq):
    with sync.Producer(refmq.namesrv, group="p") as producer:
        producer.send("Orders", b"x")
    assert refmq.messages("Orders").bodies() == [b"y"]
"""

UNUSED = """
import sys

def test_nothing():
    assert "asyncio" not in sys.modules or "refmq.testing" not in sys.modules
    assert "refmq.testing" not in sys.modules
"""


ASYNC = """
import pytest, refmq as package

@pytest.mark.MARK
async def test_as_a_coroutine(refmq):
    async with package.Producer(refmq.namesrv, group="p") as producer:
        await producer.send("Orders", b"x")
    assert refmq.messages("Orders").bodies() == [b"x"]
"""


def run_pytest(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(text)
    # Other plugins have warnings of their own; what we must not leave is an open file, socket or task.
    python = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning"]
    command = [*python, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, *arguments, "test_it.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_tests_get_a_cluster_each_and_a_run_can_share_one(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, USED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout


def test_a_failure_shows_what_the_broker_saw(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, FAILS)
    assert done.returncode == 1
    assert "what refmq saw" in done.stdout
    assert "SEND_MESSAGE_V2 Orders (p) -> SUCCESS" in done.stdout


def test_a_run_that_does_not_use_it_does_not_notice_it(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, UNUSED)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout
    assert "what refmq saw" not in done.stdout


@pytest.mark.slow
def test_it_works_with_several_workers(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, USED.replace("def test_session_again", "def not_run"), "-n", "2")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("mark", "plugin"), [("anyio", "anyio"), ("asyncio", "pytest_asyncio")])
def test_tests_may_be_coroutines_of_any_plugin(tmp_path: Path, mark: str, plugin: str) -> None:
    pytest.importorskip(plugin)
    done = run_pytest(tmp_path, ASYNC.replace("MARK", mark), "-k", "not trio")
    assert done.returncode == 0, done.stdout + done.stderr
