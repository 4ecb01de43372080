"""``refmq trace``: what is in the trace files of a node or a cluster."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from refmq.cli.output import json_option, print_json, print_table
from refmq.errors import CorruptRecord, RefmqError, UsageError
from refmq.model.vocabulary import fields_of
from refmq.trace.reader import TraceFile, read_file, trace_files
from refmq.trace.record import Dropped, Outcome, Recorded

place_argument = click.argument("place", type=click.Path(path_type=Path))


@click.group(name="trace", no_args_is_help=True)
def command() -> None:
    """Read recorded traces: files or directories that a node wrote with --trace."""


@command.command("ls")
@place_argument
@json_option
def ls(place: Path, as_json: bool) -> None:
    """List the trace files in PLACE: node, events, what is missing or damaged."""
    rows = []
    for path, file in read_all(place):
        rows.append(
            {
                "file": str(path),
                "node": file.node,
                "life": stamp(file.head.life_ns),
                "number": file.head.file_number,
                "bytes": file.size_bytes,
                "blocks": file.block_count,
                "events": len(file.events),
                "dropped": file.dropped_count,
                "damage": [str(damage) for damage in file.damage],
            }
        )
    if as_json:
        print_json(rows)
        return
    print_table(
        ["FILE", "NODE", "LIFE", "EVENTS", "DROPPED", "DAMAGE"],
        [
            [r["file"], r["node"], r["life"], r["events"], r["dropped"], "; ".join(r["damage"]) or "none"]  # type: ignore[arg-type]  # the list of texts above
            for r in rows
        ],
    )


@command.command("cat")
@place_argument
@click.option("--action", "actions", multiple=True, help="Only events of this action (may be repeated).")
@click.option("--node", "nodes", multiple=True, help="Only events of this node (may be repeated).")
@click.option("--limit", type=click.IntRange(1), help="Stop after so many lines.")
@json_option
def cat(place: Path, actions: tuple[str, ...], nodes: tuple[str, ...], limit: int | None, as_json: bool) -> None:
    """Print the events in PLACE, file by file. With --json: one object per line."""
    printed = 0
    for _, file in read_all(place):
        if nodes and file.node not in nodes:
            continue
        for entry in merged(file):
            if isinstance(entry, Recorded) and actions and entry.event.action not in actions:
                continue
            click.echo(
                json.dumps(as_object(file.node, entry), ensure_ascii=False) if as_json else line(file.node, entry)
            )
            printed += 1
            if printed == limit:
                return


@command.command("stats")
@place_argument
@json_option
def stats(place: Path, as_json: bool) -> None:
    """Count the events in PLACE by node, action and outcome."""
    counts: Counter[tuple[str, str, str]] = Counter()
    dropped: Counter[str] = Counter()
    damaged = 0
    first_ns: int | None = None
    last_ns: int | None = None
    for _, file in read_all(place):
        damaged += len(file.damage)
        dropped[file.node] += file.dropped_count
        for recorded in file.events:
            counts[file.node, recorded.event.action, recorded.outcome.name.lower()] += 1
            first_ns = recorded.at_ns if first_ns is None else min(first_ns, recorded.at_ns)
            last_ns = recorded.at_ns if last_ns is None else max(last_ns, recorded.at_ns)
    duration_s = 0.0 if first_ns is None or last_ns is None else (last_ns - first_ns) / 1e9
    rows = [(*key, count) for key, count in sorted(counts.items())]
    if as_json:
        print_json(
            {
                "events": sum(counts.values()),
                "dropped": sum(dropped.values()),
                "damaged_stretches": damaged,
                "first": None if first_ns is None else stamp(first_ns),
                "duration_s": duration_s,
                "counts": [dict(zip(("node", "action", "outcome", "count"), row, strict=True)) for row in rows],
            }
        )
        return
    print_table(["NODE", "ACTION", "OUTCOME", "COUNT"], rows)
    click.echo(
        f"{sum(counts.values())} events in {duration_s:.3f} s, "
        f"{sum(dropped.values())} dropped, {damaged} damaged stretches"
    )


def read_all(place: Path) -> Iterator[tuple[Path, TraceFile]]:
    """The trace files of a place, one at a time."""
    paths = trace_files(place)
    if not paths:
        raise UsageError(f"There are no trace files in {place}.")
    for path in paths:
        try:
            yield path, read_file(path)
        except CorruptRecord as error:
            raise RefmqError(f"{path} is not a trace file: {error}") from error


def merged(file: TraceFile) -> Iterator[Recorded | Dropped]:
    """Events and drops of one file in the order of their sequence numbers."""
    drops = list(file.drops)
    for recorded in file.events:
        while drops and drops[0].sequence < recorded.sequence:
            yield drops.pop(0)
        yield recorded
    yield from drops


def stamp(at_ns: int) -> str:
    """A time for people: UTC with microseconds."""
    seconds, rest_ns = divmod(at_ns, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest_ns // 1000:06}Z"


def line(node: str, entry: Recorded | Dropped) -> str:
    """One event as a line of text; fields have the names of the vocabulary."""
    if isinstance(entry, Dropped):
        return f"{stamp(entry.at_ns)} {node} -- {entry.count} events are missing from number {entry.sequence} on"
    event = entry.event
    parts = [stamp(entry.at_ns), node, event.action]
    if entry.outcome is not Outcome.STEP:
        parts.append(f"{entry.outcome.name.lower()}#{entry.operation}")
    if event.actor:
        parts.append(f"by {event.actor}")
    if event.subject:
        parts.append(f"on {event.subject}" + (f"/{event.queue_id}" if event.queue_id >= 0 else ""))
    parts.extend(f"{name}={value}" for name, value in numbers(entry))
    return " ".join(parts)


def as_object(node: str, entry: Recorded | Dropped) -> dict[str, object]:
    """One event as a JSON object."""
    if isinstance(entry, Dropped):
        return {"node": node, "at_ns": entry.at_ns, "dropped": entry.count, "sequence": entry.sequence}
    event = entry.event
    return {
        "node": node,
        "at_ns": entry.at_ns,
        "sequence": entry.sequence,
        "action": event.action,
        "outcome": entry.outcome.name.lower(),
        "operation": entry.operation,
        "actor": event.actor,
        "subject": event.subject,
        "queue_id": event.queue_id,
        **{name: getattr(event, name) for name in "abcd"},
        "fields": dict(numbers(entry)),
    }


def numbers(entry: Recorded) -> list[tuple[str, int]]:
    """The four numbers under the names that the vocabulary gives them; unnamed zeros are left out."""
    names = fields_of(entry.event.action, entry.outcome.name.lower())
    found = []
    for position, letter in enumerate("abcd"):
        value: int = getattr(entry.event, letter)
        if position < len(names) and names[position]:
            found.append((names[position], value))
        elif value:
            found.append((letter, value))
    return found
