"""`refmq verify` on stores of a real 4.9.7 broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from refmq.cli import _verify_stores, main
from refmq.errors import CheckFound
from refmq.verify.spark.stores import StoreFlaw, StoreJudgement
from tests.cli.test_store import extracted


@pytest.mark.parametrize("name", ["clean", "killed"])
def test_a_store_of_a_real_broker_agrees_with_itself(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = extracted(name, tmp_path)
    assert main(["verify", str(store.parent)]) == 0
    assert "286 records, 286 units, 562 index entries" in capsys.readouterr().out


def test_a_damaged_store_is_exit_code_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = extracted("clean", tmp_path)
    unit = next(path for path in sorted((store / "consumequeue").rglob("*")) if path.is_file())
    data = bytearray(unit.read_bytes())
    data[7] ^= 1
    unit.write_bytes(data)
    assert main(["verify", str(store)]) == 3
    assert "damage: queue" in capsys.readouterr().out


def test_traces_and_stores_are_judged_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = extracted("clean", tmp_path)
    assert main(["verify", str(store), str(tmp_path)]) == 2
    assert "apart" in capsys.readouterr().err
    assert main(["verify", str(store), "--engine", "local", "--replicas"]) == 2


def test_flaws_are_told_and_notes_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    note = StoreFlaw("s", "QueueMatchesLog", "a unit is missing", is_note=True)
    judgement = StoreJudgement(("s",), 5, 5, 0, 100, (note,), 0.5)
    _verify_stores.tell(judgement, tmp_path / "report.json")
    assert "note: s: a unit is missing" in capsys.readouterr().out
    assert "a unit is missing" in (tmp_path / "report.json").read_text()
    flaws = (StoreFlaw("s", "QueueMatchesLog", "a unit is wrong"),) * 30
    with pytest.raises(CheckFound, match="30 places"):
        _verify_stores.tell(StoreJudgement(("s",), 5, 5, 0, 100, flaws, 0.5), None)
    assert "... and 10 more" in capsys.readouterr().out
