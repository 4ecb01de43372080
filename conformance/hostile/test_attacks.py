"""Every attack, on both engines."""

from __future__ import annotations

from pathlib import Path

import pytest

import refmq_fast
from conformance.hostile.attacks import EVERY, Attack
from conformance.hostile.target import attacked

FAST = pytest.param(
    "fast",
    marks=[
        pytest.mark.extension,
        pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}"),
    ],
)


@pytest.mark.parametrize("engine", ["reference", FAST])
@pytest.mark.parametrize("given", EVERY, ids=lambda each: each.name)
def test_the_server_and_its_neighbour_do_not_mind(given: Attack, engine: str, tmp_path: Path) -> None:
    with attacked(tmp_path, engine, dict(given.settings)) as (target, _):
        given.run(target)


MISTAKES = {
    "a record begins wherever bytes look like one": (
        "forged half messages",
        ("refmq.broker.named_record", "(record, data) if _begins(store, record, position) else None", "record, data"),
    ),
    "offsets may be of anything": (
        "offsets that no file can hold",
        ("refmq.plane.offset_requests", "mistake = commit_mistake(topic, group, queue_id)", "mistake = None"),
    ),
    "groups may be called anything": (
        "groups and clients with impossible names",
        ("refmq.broker.groups", "if not is_legal_group(name):", "if False:"),
    ),
    "a setting hides the next line": (
        "settings that would be read as others",
        ("refmq.protocol.properties", "escaped = value.replace(", "escaped = value or value.replace("),
    ),
    "the topic of a retry comes before its group": (
        "retry topics that nobody asked for",
        ("refmq.plane.send", "if topic is None and header.topic.startswith(RETRY_PREFIX):", "if False:"),
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_attack_sees_its_mistake(mistake: str, tmp_path: Path) -> None:
    name, change = MISTAKES[mistake]
    (given,) = (each for each in EVERY if each.name == name)
    with pytest.raises(AssertionError), attacked(tmp_path, "reference", dict(given.settings), change) as (target, _):
        given.run(target)


def test_every_attack_has_a_name_of_its_own() -> None:
    names = [each.name for each in EVERY]
    assert len(set(names)) == len(names) >= 15
