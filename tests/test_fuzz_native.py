"""libFuzzer targets: each is built and takes its seeds, and finds mistakes that are put into the C."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fuzz import native_targets
from fuzz.native_targets import SOURCES, build, find_clang, names, run, run_all
from refmq.errors import CheckFound, MissingTool, UsageError

needs_clang = pytest.mark.skipif(shutil.which("clang") is None, reason="there is no clang")


def test_every_source_is_a_target() -> None:
    assert set(native_targets.SEEDS) <= set(names())
    assert set(MISTAKES) == set(names()), "each is seen to find something"
    assert len(names()) == len(list(SOURCES.glob("*.c")))


@needs_clang
@pytest.mark.parametrize("name", names())
def test_a_target_takes_its_seeds(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_targets, "BUILD", tmp_path)
    inputs, _ = run(build(name, find_clang()), 1, 0)
    assert inputs > len(list((tmp_path / "corpus" / name).glob("seed-*"))) / 2


MISTAKES = {
    "frame": "-DRMQ_MISTAKE_FRAME_PREFIX",
    "header_json": "-DRMQ_MISTAKE_JSON_HALF_PAIR",
    "header_binary": "-DRMQ_MISTAKE_BINARY_LENGTH",
    "conn": "-DRMQ_MISTAKE_CONN_STALE_START",
    "record": "-DRMQ_MISTAKE_RECORD_TOPIC",
    "batch": "-DRMQ_MISTAKE_BATCH_BODY",
    "properties": "-DRMQ_MISTAKE_EMPTY_VALUE",
    "message_list": "-DRMQ_MISTAKE_LIST_TOPIC",
    "scan": "-DRMQ_MISTAKE_SCAN_END",
    "text": "-DRMQ_MISTAKE_UTF8_HALF_PAIR",
    "fields": "-DRMQ_MISTAKE_DIGITS_MAX",
    "digest": "-DRMQ_MISTAKE_DIGEST_STRING",
    "log_units": "-DRMQ_MISTAKE_LOG_POSITION",
}
"""Switches of core/ that no other build sets: a bound or a check is left out."""


@needs_clang
@pytest.mark.parametrize(("name", "switch"), MISTAKES.items())
def test_a_mistake_is_found(name: str, switch: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_targets, "BUILD", tmp_path)
    with pytest.raises(CheckFound, match=f"{name} broke"):
        run(build(name, find_clang(), switch), 60, 1)
    assert list((tmp_path / "found").iterdir())


def test_without_clang_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(MissingTool, match=r"clang was not found.*apt install clang"):
        run_all([], minutes=0.1, seed=0, say=print)


def test_a_target_that_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match="There is no C target nothing"):
        run_all(["nothing"], minutes=0.1, seed=0, say=print)
