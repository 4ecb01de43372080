"""The nameserver's steps, its events and the vocabulary have the same names."""

from __future__ import annotations

import re
from pathlib import Path

from refmq.model.vocabulary import FIELDS, NAMESERVER
from refmq.nameserver import kv, registration, serve, topics

SOURCES = Path(serve.__file__).parent


def test_every_action_has_its_step_function() -> None:
    for action in NAMESERVER:
        found = [module for module in (registration, topics, kv) if callable(getattr(module, action.step, None))]
        assert found or callable(getattr(serve, f"serve_{action.step}", None)), action.name


def test_every_event_is_an_action_and_every_action_has_an_event() -> None:
    text = "".join(path.read_text() for path in sorted(SOURCES.glob("*.py")))
    named = set(re.findall(r'Event\(\s*"(\w+)"', text)) | set(re.findall(r'change_perm\([^"]*"(\w+)"', text))
    assert named == {action.name for action in NAMESERVER}
    assert all(FIELDS[action.name] == action.fields for action in NAMESERVER)
