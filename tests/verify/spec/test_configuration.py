"""A configuration says about itself what it is, what it expects and when it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from refmq.errors import UsageError
from refmq.verify.spec.cfg import read_cfg
from refmq.verify.spec.configuration import (
    DEFAULT_TIMEOUT_S,
    Configuration,
    Expectation,
    Profile,
    check_entry,
    make_configuration,
    role_of,
)

CFG = read_cfg("SPECIFICATION Spec CONSTANT N = 3 INVARIANTS TypeOK Safe PROPERTY Lives")


def made(**entry: object) -> Configuration:
    checked = check_entry("toy/mc/one", {"about": "A toy.", "expect": "ok", **entry})
    return make_configuration("toy/mc/one", "Toy", Path("toy"), Path("toy/mc/MCToy.tla"), CFG, checked)


def test_an_entry_says_what_is_expected_and_when_it_runs() -> None:
    says = {"expect": "violation Safe", "profile": "quick, deep", "coverage_except": ["A", "B"], "repair": "two"}
    read = made(**says, mutants=True, timeout=12)
    assert read.expect == Expectation("violation", "Safe")
    assert read.profiles == {Profile.QUICK, Profile.DEEP}
    assert (read.mutants, read.covers, read.covers_except) == (True, True, frozenset({"A", "B"}))
    assert (read.timeout_s, read.repair, read.role, read.deadlock) == (12, "two", "MC", False)
    assert read.about == ("A toy.",)


def test_an_entry_that_says_little_gets_the_defaults() -> None:
    read = made()
    assert (read.profiles, read.mutants, read.covers, read.timeout_s) == (
        frozenset({Profile.QUICK}),
        False,
        False,
        DEFAULT_TIMEOUT_S,
    )
    assert made(expect="deadlock").deadlock


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ({"about": ""}, "does not say what it is about"),
        ({"expect": "maybe"}, "cannot read the expectation 'maybe'"),
        ({"expect": "violation Other"}, "expects a violation of Other, which it does not list"),
        ({"expect": "violation (liveness) Safe"}, "Safe must be the only PROPERTY"),
        ({"expct": "ok"}, "unknown key 'expct'"),
        ({"profile": "fast"}, "profile is quick, deep or both, not 'fast'"),
        ({"mutants": "yes"}, "mutants is not a bool"),
        ({"timeout": 0}, "timeout is a positive number, not 0"),
        ({"timeout": True}, "timeout is not a int"),
        ({"with": "one"}, "with is not a list of names"),
        ({"unset": [1]}, "unset is not a list of names"),
    ],
)
def test_an_entry_that_makes_no_sense_is_refused(entry: dict[str, object], complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        made(**entry)


def test_an_entry_is_a_table() -> None:
    with pytest.raises(UsageError, match="toy/mc/one is not a table"):
        check_entry("toy/mc/one", "text")


def test_the_file_for_tlc_says_what_it_is_and_what_it_expects() -> None:
    text = made(expect="violation (liveness) Lives", mutants=True, coverage=True, about="One line.\nAnd another.").text
    header, _, body = text.partition("SPECIFICATION")
    assert header.splitlines() == [
        r"\* expect: violation (liveness) Lives",
        r"\* configuration: toy/mc/one",
        r"\* profile: quick",
        r"\* mutants: yes",
        r"\* coverage: yes",
        r"\* timeout: 900",
        r"\* One line.",
        r"\* And another.",
    ]
    assert read_cfg("SPECIFICATION" + body) == CFG == read_cfg(text)


def test_the_name_of_a_module_says_how_it_is_run() -> None:
    assert [role_of(name) for name in ("MCToy", "SIMToy", "TraceToy")] == ["MC", "SIM", "Trace"]
    with pytest.raises(UsageError, match="begins with MC, SIM or Trace"):
        role_of("Toy")
