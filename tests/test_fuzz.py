"""The fuzzer: every target takes every seed and some damage, and a mistake that is put in is found and shrunk."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import campaign
from fuzz.mutate import damaged, shrunk
from fuzz.seeds import FOUND, seeds_of
from fuzz.targets import TARGETS

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def _time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "SECONDS_MAX", 60.0)  # a busy machine is no finding of a test


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_input_breaks_nothing(name: str) -> None:
    found, fed = campaign.run([name], minutes=5, seed=7, inputs_max=60)
    assert found is None
    assert fed[name] == 60


@pytest.mark.parametrize("path", sorted(FOUND.rglob("*.bin")), ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_was_found_is_repaired(path: Path) -> None:
    assert campaign.outcome(path.parent.name, path.read_bytes()) is None


def test_every_target_has_seeds() -> None:
    assert all(seeds_of(name) for name in TARGETS)


def test_a_mistake_is_found_shrunk_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def careless(data: bytes) -> None:
        if b"\xff" in data:
            raise IndexError("careless")

    monkeypatch.setitem(TARGETS, "sql", careless)
    found, _ = campaign.run(["sql"], minutes=5, seed=3)
    assert found is not None
    assert found.data == b"\xff"
    assert "IndexError" in found.what
    assert campaign.save(found, tmp_path).read_bytes() == b"\xff"


def test_an_input_that_takes_too_long_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(data: bytes) -> None:
        while True:
            pass

    monkeypatch.setattr(campaign, "SECONDS_MAX", 0.2)
    monkeypatch.setitem(TARGETS, "sql", endless)
    signal.signal(signal.SIGALRM, campaign._too_slow)
    what = campaign.outcome("sql", b"")
    assert what is not None
    assert "longer" in what


def test_a_seed_gives_the_same_damage() -> None:
    seeds = seeds_of("frame")
    first, second = ([damaged(random.Random(5), seeds) for _ in range(3)] for _ in range(2))
    assert first == second
    assert shrunk(b"abcXdef", lambda data: b"X" in data) == b"X"


def test_the_command_line(tmp_path: Path) -> None:
    def fuzz(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "fuzz", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)

    listed = fuzz("ls")
    assert listed.returncode == 0
    assert listed.stdout.split() == list(TARGETS)
    wrong = fuzz("run", "nothing")
    assert wrong.returncode == 2
    assert "There is no target nothing" in wrong.stderr
    (tmp_path / "input").write_bytes(b"n > 1")
    assert fuzz("replay", "sql", str(tmp_path / "input")).returncode == 0
