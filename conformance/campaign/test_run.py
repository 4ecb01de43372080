"""A campaign counts what it finds, classifies it, saves it and goes on; the next one goes on behind it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.campaign import kinds, ledger
from conformance.campaign.findings import class_of
from conformance.campaign.kinds import HANG, RUN_FAILS, live, make
from conformance.campaign.ledger import STRETCH, Ledger, Stretch, total
from conformance.campaign.run import run_campaign
from conformance.campaign.workers import DIED, Job
from refmq.verify.oracles.base import Finding

TOY = "campaign.toy"
JOB = Job(TOY, "reference", 1)


def stretch(begin: int, end: int, version: str = "v", kind: str = "store") -> Stretch:
    return Stretch(kind, "reference", version, 1, begin, end)


def test_what_this_version_has_lived_through_is_passed(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    book = Ledger(path)
    for each in (stretch(0, 25), stretch(30, 40), stretch(40, 50, "another"), stretch(41, 50, kind="cluster")):
        book.add(each)
    for again in (book, Ledger(path)):
        todo = again.todo("store", "reference", "v", 1, 0)
        assert [next(todo) for _ in range(3)] == [(25, 30), (40, 65), (65, 90)]
    assert next(book.todo("store", "reference", "v", 2, 0)) == (0, STRETCH), "other steps are other histories"


def test_a_ledger_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    Ledger(path).add(stretch(0, 25))
    path.write_text(path.read_text() + '{"kind": "sto')
    assert Ledger(path).stretches == [stretch(0, 25)]


def test_the_version_is_that_of_the_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src").mkdir()
    monkeypatch.setattr(ledger, "ROOT", tmp_path)
    names = set()
    for text in ("a = 1\n", "a = 2\n", "a = 1\n"):
        (tmp_path / "src" / "m.py").write_text(text)
        ledger.version.cache_clear()
        names.add(ledger.version())
    ledger.version.cache_clear()
    assert len(names) == 2


def test_one_way_to_break_a_promise_is_one_class() -> None:
    first, second = (Finding("P", f"g@client-0.{n} is told {n} of t/{n} at broker-a, was one of [{n}]") for n in (1, 2))
    assert class_of(first) == class_of(second)
    assert class_of(first) != class_of(Finding("P", "another sentence"))


def test_a_history_that_raises_or_hangs_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "HISTORY_SECONDS_MAX", 0.2)
    for seed, invariant in ((5, RUN_FAILS), (12, HANG), (3, "Toy")):
        (violation,) = live(TOY, make(TOY, seed, 1), "reference").violations
        assert violation.invariant == invariant
    assert live(TOY, make(TOY, 1, 1), "reference", counted=True).cells == {"step Toy": 1}


def test_a_campaign_goes_on_after_what_it_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    todo = iter([(0, 10), (20, 30)])
    monkeypatch.setattr(Ledger, "todo", lambda *given: todo)
    result = run_campaign(JOB, minutes=0, jobs=2, folder=tmp_path, is_quiet=True)
    assert result.histories == 20
    found = {each.text.partition(":")[0]: each for each in result.findings.classes.values()}
    assert {name: each.count for name, each in found.items()} == {"Toy": 2, RUN_FAILS: 2, DIED: 1}
    assert found[DIED].seeds == [7]
    for each in found.values():
        assert each.saved is not None and json.loads(each.saved.read_text())["kind"] == TOY
    histories, findings, cells = total(Ledger(tmp_path / "ledger.jsonl").stretches)
    assert (histories, findings) == (20, 5)
    assert cells["step Toy"] >= 2, "some of the histories are counted"
