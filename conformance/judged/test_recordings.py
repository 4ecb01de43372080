"""`refmq serve --trace` under clients of ours, judged by TLC as it was recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from conformance.engines import BUILT_ENGINES
from conformance.judged.recording import INTERRUPTED, LONG, SHORT, Load, record
from refmq.model.vocabulary import fields_of
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.group_hints import OF_CLIENTS, Told
from refmq.verify.spec.recordings import (
    GROUPS,
    PROTOCOLS,
    Settings,
    Verdict,
    brokers_of,
    judge_recording,
    read_recording,
)
from refmq.verify.spec.tlc import Tlc

SPEC = Path(__file__).parents[2] / "spec"
pytestmark = pytest.mark.jdk


def judged(tlc: Tlc, place: Path) -> list[Verdict]:
    options = RunOptions(timeout_s=250)
    return list(judge_recording(tlc, SPEC, read_recording(place), options, Settings()))


@pytest.mark.parametrize("engine", BUILT_ENGINES)
def test_three_lives_of_a_server_are_accepted_as_they_were_recorded(tlc: Tlc, engine: str, tmp_path: Path) -> None:
    verdicts = judged(tlc, record(tmp_path, engine, SHORT))
    assert [(verdict.node, verdict.protocol) for verdict in verdicts] == [("broker-a", each) for each in PROTOCOLS]
    assert [verdict.answer.reason for verdict in verdicts if not verdict.answer.accepted] == []


@pytest.mark.parametrize("engine", BUILT_ENGINES)
def test_clients_that_record_nothing_do_not_make_a_recording_unacceptable(
    tlc: Tlc, engine: str, tmp_path: Path
) -> None:
    verdicts = judged(tlc, record(tmp_path, engine, (Load(), Load(messages=5)), clients_record=False))
    assert [verdict.protocol for verdict in verdicts] == list(PROTOCOLS)
    assert [verdict.answer.reason for verdict in verdicts if not verdict.answer.accepted] == []


@pytest.mark.parametrize("engine", BUILT_ENGINES)
def test_a_server_that_is_killed_under_load_is_accepted(tlc: Tlc, engine: str, tmp_path: Path) -> None:
    verdicts = judged(tlc, record(tmp_path, engine, INTERRUPTED))
    assert [verdict.answer.reason for verdict in verdicts if not verdict.answer.accepted] == []
    recorded = read_recording(tmp_path / "trace")
    starts = [told.event for told in recorded if told.event.action == "StartStore"]
    assert [event.a for event in starts] == [1, 0], "the second start found that nobody had stopped the first"


@pytest.mark.slow
def test_a_hundred_thousand_events_are_judged(tlc: Tlc, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = judged(tlc, record(tmp_path, BUILT_ENGINES[-1], LONG))
    with capsys.disabled():
        for verdict in verdicts:
            print(f"\n{said(verdict)}", end="")
        print()
    assert [verdict.answer.reason for verdict in verdicts if not verdict.answer.accepted] == []
    assert sum(verdict.answer.events for verdict in verdicts) >= 100_000


def said(verdict: Verdict) -> str:
    answer = verdict.answer
    return f"{verdict.protocol}: {answer.events} events, {answer.events_per_second:,.0f} a second of processor"


NOT_TOLD_TWICE = {
    ("RouteRefresh", "queues"): "nothing else tells how many queues a topic has; there may be more than are used"
}
"""A field of a consumer's step -> why a larger number in it is not noticed."""


def refused(tlc: Tlc, trace: Sequence[Told]) -> Iterator[bool]:
    for verdict in judge_recording(tlc, SPEC, trace, RunOptions(timeout_s=100), Settings(), [GROUPS]):
        yield not verdict.answer.accepted


def test_every_field_of_what_consumers_recorded_is_compared(tlc: Tlc, tmp_path: Path) -> None:
    lives = (Load(messages=12, batches=0, delayed=0, transactions=0),)
    recording = read_recording(record(tmp_path, BUILT_ENGINES[-1], lives))
    steps = {
        told.event.action: at
        for at, told in enumerate(recording)
        if told.node not in brokers_of(recording) and told.event.action in OF_CLIENTS
    }
    assert {"AcquireQueue", "PullMessages", "ConsumeStart", "ConsumeFinish", "CommitSend"} <= set(steps)
    assert not any(refused(tlc, recording))
    missed = set()
    for action, at in steps.items():
        for letter, name in zip("abcd", fields_of(action, "step"), strict=False):
            node, event = recording[at]
            altered = event._replace(**{letter: getattr(event, letter) + 7})
            trace = [*recording[:at], Told(node, altered), *recording[at + 1 :]]
            if not any(refused(tlc, trace)):
                missed.add((action, name))
    assert missed == set(NOT_TOLD_TWICE)
