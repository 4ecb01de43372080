"""``refmq trace``: what is in the trace files of a node or a cluster, and whether the specifications allow it.
`_trace_make` has the commands that write."""

from __future__ import annotations

import contextlib
import json
import struct
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click

from refmq.cli import trace_check
from refmq.cli._trace_make import export, synth
from refmq.cli.output import json_option, print_json, print_table, warn
from refmq.errors import CorruptRecord, UsageError
from refmq.model.vocabulary import fields_of
from refmq.trace.reader import Block, TraceReader, trace_files
from refmq.trace.record import RECORD_BYTES, Dropped, Outcome, Recorded

PROGRESS_INTERVAL_S: Final = 0.2
AT_NS: Final = struct.Struct("<8xq48x")
"""The time in an event record."""

place_argument = click.argument("place", type=click.Path(path_type=Path))


@click.group(name="trace", no_args_is_help=True)
def command() -> None:
    """Read recorded traces: files or directories that a node wrote with --trace. Or make some."""


command.add_command(synth)
command.add_command(export)
command.add_command(trace_check.command)


@command.command("ls")
@place_argument
@json_option
def ls(place: Path, as_json: bool) -> None:
    """List the trace files in PLACE: node, events, what is missing or damaged."""
    rows = []
    files = TraceReaders(place)
    for path, reader in files:
        events = dropped = 0
        for block in files.blocks(path, reader):
            if reader.has_only_events(block):
                events += block.head.count
                continue
            for entry in reader.entries_of(block):
                if isinstance(entry, Dropped):
                    dropped += entry.count
                else:
                    events += 1
        rows.append(
            {
                "file": str(path),
                "node": reader.node,
                "life": stamp(reader.head.life_ns),
                "number": reader.head.file_number,
                "bytes": reader.size_bytes,
                "blocks": reader.block_count,
                "events": events,
                "dropped": dropped,
                "damage": [str(damage) for damage in reader.damage],
            }
        )
    if as_json:
        print_json(rows)
    else:
        print_table(
            ["FILE", "NODE", "LIFE", "EVENTS", "DROPPED", "DAMAGE"],
            [
                [r["file"], r["node"], r["life"], r["events"], r["dropped"], in_short(r["damage"])]  # type: ignore[arg-type]  # the list of texts above
                for r in rows
            ],
        )
    files.finish()


@command.command("cat")
@place_argument
@click.option("--action", "actions", multiple=True, help="Only events of this action (may be repeated).")
@click.option("--node", "nodes", multiple=True, help="Only events of this node (may be repeated).")
@click.option("--limit", type=click.IntRange(1), help="Stop after so many lines.")
@json_option
def cat(place: Path, actions: tuple[str, ...], nodes: tuple[str, ...], limit: int | None, as_json: bool) -> None:
    """Print the events in PLACE, file by file. With --json: one object per line."""
    printed = 0
    files = TraceReaders(place, quiet=sys.stdout.isatty())
    for path, reader in files:
        for entry in (entry for block in files.blocks(path, reader) for entry in reader.entries_of(block)):
            if nodes and reader.node not in nodes:
                break
            if isinstance(entry, Recorded) and actions and entry.event.action not in actions:
                continue
            click.echo(
                json.dumps(as_object(reader.node, entry), ensure_ascii=False) if as_json else line(reader.node, entry)
            )
            printed += 1
            if printed == limit:
                return
        for damage in reader.damage:
            warn(f"{path}: {damage}")
    files.finish()


@command.command("stats")
@place_argument
@json_option
def stats(place: Path, as_json: bool) -> None:
    """Count the events in PLACE by node, action and outcome."""
    counts: Counter[tuple[str, str, str]] = Counter()
    dropped = damaged = 0
    times_ns: list[int] = []
    files = TraceReaders(place)
    for path, reader in files:
        for block in files.blocks(path, reader):
            found, missing, ends_ns = count_entries(reader, block)
            for (action, outcome), count in found.items():
                counts[reader.node, action, outcome.name.lower()] += count
            dropped += missing
            times_ns = ends_of([*times_ns, *ends_ns])
        damaged += len(reader.damage)
    duration_s = (times_ns[-1] - times_ns[0]) / 1e9 if times_ns else 0.0
    rows = [(*key, count) for key, count in sorted(counts.items())]
    if as_json:
        print_json(
            {
                "events": sum(counts.values()),
                "dropped": dropped,
                "damaged_stretches": damaged,
                "first": stamp(times_ns[0]) if times_ns else None,
                "duration_s": duration_s,
                "counts": [dict(zip(("node", "action", "outcome", "count"), row, strict=True)) for row in rows],
            }
        )
    else:
        print_table(["NODE", "ACTION", "OUTCOME", "COUNT"], rows)
        click.echo(
            f"{sum(counts.values())} events in {duration_s:.3f} s, {dropped} dropped, {damaged} damaged stretches"
        )
    files.finish()


def count_entries(reader: TraceReader, block: Block) -> tuple[Counter[tuple[str, Outcome]], int, list[int]]:
    """The events of a block by action and outcome, how many are missing, and the first and the last time."""
    records = block.records
    if reader.has_only_events(block):
        # Nearly all blocks are like this, and counting columns takes a tenth of the time.
        outcomes, lows, highs = (records[offset::RECORD_BYTES] for offset in (1, 2, 3))
        columns = Counter(zip(outcomes, lows, highs, strict=True))
        with contextlib.suppress(KeyError, ValueError):  # then something is wrong with the block
            found = {
                (reader.strings[low | high << 8], Outcome(outcome)): count
                for (outcome, low, high), count in columns.items()
            }
            return Counter(found), 0, ends_of([at_ns for (at_ns,) in AT_NS.iter_unpack(records)])
    entries = list(reader.entries_of(block))
    events = [entry for entry in entries if isinstance(entry, Recorded)]
    missing = sum(entry.count for entry in entries if isinstance(entry, Dropped))
    counts = Counter((entry.event.action, entry.outcome) for entry in events)
    return counts, missing, ends_of([entry.at_ns for entry in events])


def ends_of(times_ns: list[int]) -> list[int]:
    return [min(times_ns), max(times_ns)] if times_ns else []


class TraceReaders:
    """The trace files of a place, one after the other. What cannot be read gets a line, and the rest is read."""

    def __init__(self, place: Path, *, quiet: bool = False) -> None:
        self._paths = trace_files(place)
        if not self._paths:
            raise UsageError(f"There are no trace files in {place}.")
        self._shows_progress = sys.stderr.isatty() and not quiet
        self._shown_s = time.monotonic()
        self._bad_count = 0

    def __iter__(self) -> Iterator[tuple[Path, TraceReader]]:
        for path in self._paths:
            try:
                with path.open("rb") as source:
                    if path.stat().st_size == 0:
                        warn(f"{path} is empty: its node ended before it wrote anything")
                        continue
                    yield path, TraceReader(source)
            except CorruptRecord as error:
                self._bad(f"{path} is not a trace file: {error}")
            except OSError as error:
                self._bad(f"{path} cannot be read: {error.strerror}")

    def _bad(self, why: str) -> None:
        warn(why)
        self._bad_count += 1

    def blocks(self, path: Path, reader: TraceReader) -> Iterator[Block]:
        """The blocks of a file, with a line that says how far they are when somebody waits."""
        try:
            for block in reader.blocks():
                yield block
                if self._shows_progress and time.monotonic() > self._shown_s + PROGRESS_INTERVAL_S:
                    self._shown_s = time.monotonic()
                    click.echo(f"\r\x1b[K{path.name}: {block.position / reader.size_bytes:.0%}", nl=False, err=True)
        finally:
            if self._shows_progress:
                click.echo("\r\x1b[K", nl=False, err=True)

    def finish(self) -> None:
        """A command that could not read everything has failed."""
        if self._bad_count:
            click.get_current_context().exit(1)


def in_short(damage: list[str]) -> str:
    """The first stretch, and how many there are."""
    return "; and ".join([*damage[:1], *([f"{len(damage) - 1} more"] if damage[1:] else [])]) or "none"


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
