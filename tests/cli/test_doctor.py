"""``refmq doctor`` shows every line, in text and as JSON, and its exit code follows the worst of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from refmq.cli import doctor, main
from refmq.tools.health import HealthLine, State

NAMES = ["Python", "extension", "engine", "JDK", "TLC", "Spark", "free disk", "open files"]


def test_the_json_document_has_every_line(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert [finding["name"] for finding in document["findings"]] == NAMES
    assert code == (0 if document["well"] else 3)
    for finding in document["findings"]:
        assert set(finding) == {"name", "state", "found", "remedy"}
        assert (finding["state"] == "ok") == (finding["remedy"] == "")


@pytest.mark.parametrize(("worst", "code"), [(State.OK, 0), (State.ADVICE, 0), (State.PROBLEM, 3)])
def test_only_a_problem_gives_exit_code_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], worst: State, code: int
) -> None:
    remedy = "" if worst is State.OK else "Free it."
    lines = [HealthLine("Python", State.OK, "3.11"), HealthLine("disk", worst, "0 GiB", remedy)]
    monkeypatch.setattr(doctor, "examine", lambda store: iter(lines))
    assert main(["doctor"]) == code
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert ("Free it." in out) == (worst is not State.OK)
    assert err == ("refmq: disk: not well, see the lines marked !!\n" if code else "")


def test_the_store_that_is_asked_about_need_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--json", "--store", str(tmp_path / "not" / "yet")])
    findings = {line["name"]: line["found"] for line in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["free disk"].endswith(f" at {tmp_path}")
