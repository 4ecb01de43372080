"""``refmq store`` on real stores of 4.9.7, and on what is none."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from refmq.cli import main
from refmq.net.files import RealDisk

GOLDEN = Path(__file__).parent.parent / "golden" / "store"

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        code = main(["store", *map(str, arguments)])
        out, err = capfd.readouterr()
        return code, out, err

    return call


@pytest.fixture(params=["clean", "killed"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return extracted(request.param, tmp_path)


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    return extracted("clean", tmp_path)


def extracted(name: str, folder: Path) -> Path:
    with zipfile.ZipFile(GOLDEN / f"{name}-4.9.7.zip") as archive:
        archive.extractall(folder / name)
    return folder / name / "store"


def snapshot(store: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path.relative_to(store)): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(store.rglob("*"))
        if path.is_file()
    }


READERS: dict[str, list[str]] = {
    "ls": [],
    "info": [],
    "scan": [],
    "verify": [],
    "msg": ["237"],
    "cq": [],
    "index": [],
    "checkpoint": [],
}


@pytest.mark.parametrize("name", READERS)
def test_every_reader_prints_text_and_json_and_changes_nothing(run: Run, store: Path, name: str) -> None:
    before = snapshot(store)
    for extra in ([], ["--json"]):
        code, out, err = run(name, store, *READERS[name], *extra)
        assert (code, err) == (0, "")
        assert out
    lines = out.splitlines() if name == "scan" else [out]
    assert all(json.loads(line) is not None for line in lines)
    assert snapshot(store) == before


def test_info_knows_the_sizes(run: Run, clean: Path) -> None:
    info: dict[str, Any] = json.loads(run("info", clean, "--json")[1])
    assert info["log_file_bytes"] == 65536
    assert info["queue_file_bytes"] == 800
    assert (info["index_slots"], info["index_entries"]) == (100, 400)
    assert info["stopped_cleanly"] is True
    assert (info["queues"], info["topics"]) == (12, 6)


def test_a_message_is_found_by_offset_and_by_id(run: Run, clean: Path) -> None:
    message = json.loads(run("msg", clean, 237, "--json")[1])
    assert (message["topic"], message["queue_id"], message["queue_offset"]) == ("GoldenTopic", 1, 0)
    assert json.loads(run("msg", clean, message["message_id"], "--json")[1]) == message
    assert run("msg", clean, 237, "--body")[1] == "body of plain 1"


def test_every_message_that_the_java_client_sent_is_there(run: Run, clean: Path) -> None:
    lines = (clean.parent / "messages.txt").read_text().splitlines()
    sent = [line.split() for line in lines if line.startswith("sent SEND_OK")]
    messages = [json.loads(line) for line in run("scan", clean, "--json")[1].splitlines()[:-1]]
    by_id = {message["message_id"]: message for message in messages}
    assert len(sent) > 200
    for _, _, unique, offset_id, _, queue, _, key, *_ in sent:
        if offset_id == "null":  # a transaction: its half message is known by its unique key alone
            assert any(m["properties"].get("UNIQ_KEY") == unique for m in messages)
            continue
        assert by_id[offset_id]["properties"]["UNIQ_KEY"] == unique
        assert by_id[offset_id]["properties"]["KEYS"] == key
        if by_id[offset_id]["topic"] == "GoldenTopic":
            assert by_id[offset_id]["queue_id"] == int(queue)


def test_a_queue_and_a_key_lead_to_the_same_message(run: Run, clean: Path) -> None:
    [unit] = json.loads(run("cq", clean, "GoldenTopic", 1, "--count", 1, "--json")[1])
    [entry] = json.loads(run("index", clean, "--topic", "GoldenTopic", "--key", "plain-1", "--json")[1])
    assert unit["physical_offset"] == entry["physical_offset"] == 237


def test_an_export_holds_every_message_with_its_body(run: Run, clean: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    assert run("export", clean, "--out", target)[0] == 0
    lines = [json.loads(line) for line in target.read_text().splitlines()]
    assert len(lines) == 286
    assert all("body" in line for line in lines)
    assert len(run("export", clean, "--topic", "OtherTopic")[1].splitlines()) == 12


def test_damage_gives_exit_code_3_and_one_line(run: Run, clean: Path) -> None:
    log = clean / "commitlog" / "00000000000000000000"
    data = bytearray(log.read_bytes())
    data[237 + 90] ^= 1
    log.write_bytes(data)
    for name in ("verify", "scan"):
        code, out, err = run(name, clean)
        assert code == 3
        assert len(err.splitlines()) == 1
        assert "body crc" in out
    findings = json.loads(run("verify", clean, "--json")[1])
    assert findings["sound"] is False


def test_two_stores_are_compared(run: Run, clean: Path, tmp_path: Path) -> None:
    assert run("diff", clean, clean)[0] == 0
    code, out, err = run("diff", clean, extracted("killed", tmp_path))
    assert code == 3
    assert "log 0 born_timestamp_ms" in out
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("name", [*READERS, "export", "diff", "repair"])
def test_what_is_no_store_gets_one_clear_line(run: Run, tmp_path: Path, name: str) -> None:
    extra = {"msg": ["0"], "diff": [str(tmp_path)]}.get(name, [])
    for directory, expected in ((tmp_path, "it is not a store"), (tmp_path / "nowhere", "no such directory")):
        code, out, err = run(name, directory, *extra)
        assert (code, out) == (1, "")
        assert expected in err
        assert len(err.splitlines()) == 1


def test_a_file_is_no_store(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    code, _, err = run("info", tmp_path / "file")
    assert code == 1
    assert "it is not a directory" in err
    assert len(err.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_store_without_permission_gets_one_clear_line(run: Run, clean: Path) -> None:
    (clean / "commitlog").chmod(0)
    code, _, err = run("scan", clean)
    (clean / "commitlog").chmod(0o755)
    assert code == 1
    assert "Permission denied" in err


def test_a_store_in_use_is_not_verified_nor_repaired(run: Run, clean: Path) -> None:
    lock = RealDisk(clean).lock("lock")
    try:
        for name in ("verify", "repair"):
            code, _, err = run(name, clean)
            assert code == 1
            assert f"process {os.getpid()} is using it" in err
        assert run("verify", clean, "--in-use")[0] == 0
        assert json.loads(run("info", clean, "--json")[1])["in_use_by"] == os.getpid()
    finally:
        lock.release()


def test_wrong_arguments_are_usage_errors(run: Run, clean: Path) -> None:
    for arguments in (("msg", clean, "xyz"), ("cq", clean, "NoTopic"), ("index", clean, "--key", "k"), ("nothing",)):
        assert run(*arguments)[0] == 2
    assert run("msg", clean, "5")[0] == 1


def test_progress_is_shown_when_asked_for(run: Run, clean: Path) -> None:
    assert "100 %" in run("verify", clean, "--progress")[2]


def test_a_dry_run_says_what_would_change_and_changes_nothing(run: Run, store: Path) -> None:
    before = snapshot(store)
    code, out, err = run("repair", "--dry-run", store)
    assert (code, err) == (0, "")
    assert "the log is valid to" in out
    assert snapshot(store) == before
    changed = json.loads(run("repair", "--dry-run", store, "--json")[1])["files"]
    queues = [path for _, path in changed if path.startswith("consumequeue/")]
    assert queues == []  # rebuilt, and the same in the end
    assert (["removed", "abort"] in changed) == (store.parent.name == "killed")


def test_a_repaired_store_is_clean_and_has_every_message(run: Run, tmp_path: Path) -> None:
    store = extracted("killed", tmp_path)
    before = run("scan", store, "--json")[1]
    assert run("repair", store)[0] == 0
    assert not (store / "abort").exists()
    verified = json.loads(run("verify", store, "--json")[1])
    assert verified["findings"] == []
    assert run("scan", store, "--json")[1] == before
    assert run("repair", store)[0] == 0


def test_damage_is_repaired_only_when_told_to_cut(run: Run, clean: Path) -> None:
    log = clean / "commitlog" / "00000000000000000000"
    data = bytearray(log.read_bytes())
    data[237 + 90] ^= 1
    log.write_bytes(data)
    before = {name: content for name, (content, _) in snapshot(clean).items()}
    for extra in ([], ["--dry-run"]):
        code, _, err = run("repair", clean, *extra)
        assert code == 1
        assert "body crc at physical offset 245" in err
        assert len(err.splitlines()) == 1
    assert {name: content for name, (content, _) in snapshot(clean).items() if name != "lock"} == {
        name: content for name, content in before.items() if name != "lock"
    }
    assert run("repair", clean, "--cut-damage")[0] == 0
    assert json.loads(run("verify", clean, "--json")[1])["log_end"] == 237
