"""A counterexample as a sequence of steps for people to read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from refmq.model import vocabulary
from refmq.verify.spec.tlc import Outcome, State
from refmq.verify.spec.values import TlaFunction, TlaValue, parse_value, show, to_json

INITIAL = "Initial predicate"
LONGEST_VALUE = 100  # characters of one value in the printed form; the saved one is complete


@dataclass(frozen=True, slots=True)
class Change:
    """One place in the state that a step changed: `log[2].durable`, before and after (None: not there)."""

    place: str
    before: TlaValue | None
    after: TlaValue | None


@dataclass(frozen=True, slots=True)
class CounterStep:
    """One step of a counterexample."""

    action: str
    by: str
    changes: tuple[Change, ...]


def steps_of(outcome: Outcome, protocol: str) -> list[CounterStep]:
    """The steps of a counterexample; the first one is the initial state, with every variable as a change."""
    found = []
    before: dict[str, TlaValue] = {}
    for state in outcome.states:
        after = {name: read(text) for name, text in state.variables.items()}
        action = "Init" if state.action == INITIAL else state.action
        found.append(CounterStep(action, taken_by(protocol, action), tuple(state_changes(before, after))))
        before = after
    return found


def read(text: str) -> TlaValue:
    try:
        return parse_value(text)
    except ValueError:
        return text  # a value that we cannot parse is still worth showing


def state_changes(before: dict[str, TlaValue], after: dict[str, TlaValue]) -> Iterator[Change]:
    for name, value in after.items():
        if name not in before:
            yield Change(name, None, value)
        elif before[name] != value:
            yield from value_changes(name, before[name], value)


def value_changes(place: str, before: TlaValue, after: TlaValue) -> Iterator[Change]:
    """The smallest parts that differ, as long as the overall shape stays the same."""
    if isinstance(before, TlaFunction) and isinstance(after, TlaFunction) and set(before) == set(after):
        for key in after:
            if before[key] != after[key]:
                yield from value_changes(place + selector(key), before[key], after[key])
    elif isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
        for index, (old, new) in enumerate(zip(before, after, strict=True), start=1):
            if old != new:
                yield from value_changes(f"{place}[{index}]", old, new)
    else:
        yield Change(place, before, after)


def selector(key: TlaValue) -> str:
    return f".{key}" if type(key) is str and re.fullmatch(r"[a-zA-Z_]\w*", key) else f"[{show(key)}]"


def taken_by(protocol: str, action: str) -> str:
    """Who takes the action, according to the vocabulary; empty for names that are not in it."""
    for known in vocabulary.PROTOCOLS:
        if known.module == protocol:
            for candidate in known.actions:
                if candidate.name == action:
                    return str(candidate.by)
    return ""


def comment_of(spec: Path, action: str) -> str:
    """The first sentence of the comment above the action's definition: who acts, when and why."""
    if not spec.is_file():
        return ""
    lines = spec.read_text().splitlines()
    for number, line in enumerate(lines):
        if re.match(rf"{re.escape(action)}(\(.*\))? *==", line):
            above = []
            while number > 0 and lines[number - 1].startswith(r"\*"):
                number -= 1
                above.append(lines[number].lstrip("\\* ").strip())
            return " ".join(reversed(above)).split(". ")[0][:200]
    return ""


def render(steps: list[CounterStep], loop_to: int | None) -> str:
    """The steps for people: a line per step, a line per change."""
    assert loop_to is None or 1 <= loop_to <= len(steps), "it returns to one of its own steps"
    lines = []
    for number, step in enumerate(steps, start=1):
        who = f"  ({step.by})" if step.by else ""
        lines.append(f"{number:>4}  {step.action}{who}")
        for change in step.changes:
            after = "(gone)" if change.after is None else shorten(show(change.after))
            if number == 1 or change.before is None:
                lines.append(f"        {change.place} = {after}")
            else:
                lines.append(f"        {change.place}: {shorten(show(change.before))} -> {after}")
        if not step.changes:
            lines.append("        (nothing changes)")
    if loop_to is not None:
        if loop_to == len(steps):
            lines.append("      and nothing happens any more")
        else:
            lines.append(f"      and back to {loop_to}, for ever")
    return "\n".join(lines)


def shorten(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


def history(steps: list[CounterStep], loop_to: int | None) -> dict[str, object]:
    """The counterexample as JSON data: a list of named steps, each with what it changed."""
    entries = [
        {
            "step": step.action,
            "by": step.by,
            "changes": {
                change.place: None if change.after is None else to_json(change.after) for change in step.changes
            },
        }
        for step in steps
    ]
    return {"steps": entries, "loop_to": loop_to}


def last_action(states: list[State]) -> str:
    return states[-1].action if states else ""
