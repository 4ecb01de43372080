"""``refmq store``: look at the files of a stopped or copied store, ours or Java's. Read-only unless told otherwise."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from refmq.cli.output import json_option, print_json, print_table
from refmq.errors import CheckFound, CorruptRecord, RefmqError, StoreInUse, UsageError, WireError
from refmq.inspect.diff import diff_stores
from refmq.inspect.files import (
    LOCK_FILE,
    NotAStore,
    StoreFiles,
    index_entries,
    look_at_store,
    queue_units,
)
from refmq.inspect.log import Damage, Found, LogEnd, Progress, read_one, read_records
from refmq.inspect.verify import Severity, key_hash, verify_store
from refmq.model.ids import TimestampMs
from refmq.net.files import RealDisk
from refmq.protocol.record import Record, decode_properties, parse_message_id

F = TypeVar("F", bound=Callable[..., object])

PROGRESS_EVERY_S = 0.5
DIFFERENCES_SHOWN_MAX = 20

directory_argument = click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
progress_option = click.option("--progress", is_flag=True, help="Show progress even when stderr is not a terminal.")
force_option = click.option("--in-use", is_flag=True, help="Look even though a process holds the store's lock.")


@click.group(help="Look at the files of a stopped or copied store, ours or Java's.")
def command() -> None:
    pass


# --- opening --------------------------------------------------------------------------------------------------------


@contextmanager
def opened(directory: Path, *, in_use: bool = True) -> Iterator[tuple[RealDisk, StoreFiles]]:
    """The store in a directory; one clear error when it is none, may not be read or is in use."""
    if directory.exists() and not directory.is_dir():
        raise NotAStore(f"cannot look at {directory}: it is not a directory")
    disk = RealDisk(directory)
    try:
        holder = disk.lock_holder(LOCK_FILE)
        if holder is not None and not in_use:
            raise StoreInUse(str(directory), "look at", f"process {holder} is using it; stop it, or pass --in-use")
        try:
            files = look_at_store(disk)
        except NotAStore as error:
            raise NotAStore(f"cannot look at {directory}: {error}") from None
        yield disk, files
    finally:
        disk.close()


def progress_line(wanted: bool) -> Progress | None:
    """Progress on stderr: on a terminal, or when it is asked for."""
    if not wanted and not sys.stderr.isatty():
        return None
    begin = time.monotonic()
    shown = begin

    def show(done: int, total: int) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown < PROGRESS_EVERY_S and done < total:
            return
        shown = now
        percent = 100 * done // total if total else 100
        click.echo(f"{done >> 20} of {total >> 20} MiB, {percent} %, {now - begin:.0f} s", err=True)

    return show


def time_text(at_ms: int) -> str:
    """A time for people; numbers that cannot be a time stay numbers."""
    try:
        return (
            datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
        )
    except (ValueError, OverflowError, OSError):
        return str(at_ms)


# --- names and sizes ------------------------------------------------------------------------------------------------


@command.command("ls")
@directory_argument
@json_option
def ls_command(directory: Path, as_json: bool) -> None:
    """List the files of a store and the offsets they hold."""
    with opened(directory) as (disk, files):
        rows = []
        for kind, sequence in [
            ("log", files.log),
            *[(f"queue {queue.topic}/{queue.queue_id}", queue.sequence) for queue in files.queues],
        ]:
            for file in sequence.files:
                rows.append((kind, file.path, file.begin, file.size_bytes, file.modified_ms))
        for index in files.indexes:
            rows.append(("index", index.path, index.begin_offset, index.size_bytes, disk.info(index.path).modified_ms))
        for path in files.strays:
            size = disk.info(path).size_bytes
            rows.append(("stray", path, 0, size, disk.info(path).modified_ms))
    names = ("kind", "path", "begin", "size_bytes", "modified_ms")
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_table(
            ("kind", "path", "begin", "bytes", "modified (UTC)"), [(*row[:4], time_text(row[4])) for row in rows]
        )


def info_of(disk: RealDisk, files: StoreFiles) -> dict[str, Any]:
    first = files.indexes[0] if files.indexes else None
    return {
        "stopped_cleanly": not files.has_abort,
        "in_use_by": disk.lock_holder(LOCK_FILE),
        "log_files": len(files.log.files),
        "log_file_bytes": files.log.file_bytes,
        "log_begin": files.log.begin,
        "queues": len(files.queues),
        "topics": len({queue.topic for queue in files.queues}),
        "queue_file_bytes": files.queue_file_bytes,
        "ext_file_bytes": files.ext_file_bytes,
        "index_files": len(files.indexes),
        "index_slots": first.slots if first else 0,
        "index_entries": first.entries if first else 0,
        "has_checkpoint": files.has_checkpoint,
        "configs": list(files.configs),
        "strays": list(files.strays),
    }


@command.command("info")
@directory_argument
@json_option
def info_command(directory: Path, as_json: bool) -> None:
    """Say what kind of store it is: sizes, counts, clean or not."""
    with opened(directory) as (disk, files):
        info = info_of(disk, files)
    if as_json:
        print_json(info)
    else:
        print_table(("what", "value"), [(name.replace("_", " "), _shown(value)) for name, value in info.items()])


def _shown(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


@command.command("checkpoint")
@directory_argument
@json_option
def checkpoint_command(directory: Path, as_json: bool) -> None:
    """Show the checkpoint: up to when log, queues and index were durable."""
    with opened(directory) as (_, files):
        checkpoint = files.checkpoint
    stamps = {"log_ms": checkpoint.log_ms, "queue_ms": checkpoint.queue_ms, "index_ms": checkpoint.index_ms}
    durable = checkpoint.durable
    offsets = (
        {}
        if durable is None
        else {"log_to": durable.log_to, "queues_to": durable.queues_to, "index_to": durable.index_to}
    )
    if as_json:
        print_json({"exists": files.has_checkpoint, **stamps, "durable": offsets or None})
        return
    if not files.has_checkpoint:
        click.echo("There is no checkpoint.")
    print_table(("stamp", "ms", "UTC"), [(name, value, time_text(value)) for name, value in stamps.items()])
    if offsets:
        print_table(("durable", "physical offset"), list(offsets.items()))


# --- messages -------------------------------------------------------------------------------------------------------


def message_of(record: Record, *, body: bool) -> dict[str, Any]:
    """A record as data; the body in base64."""
    found: dict[str, Any] = {
        "physical_offset": record.physical_offset,
        "size_bytes": record.size_bytes,
        "topic": record.topic,
        "queue_id": record.queue_id,
        "queue_offset": record.queue_offset,
        "message_id": record.message_id,
        "store_ms": record.store_timestamp_ms,
        "born_ms": record.born_timestamp_ms,
        "flag": record.flag,
        "sys_flag": record.sys_flag,
        "reconsume_times": record.reconsume_times,
        "prepared_transaction_offset": record.prepared_transaction_offset,
        "properties": decode_properties(record.properties),
        "body_bytes": len(record.body),
    }
    if body:
        found["body"] = base64.b64encode(record.body).decode()
    return found


def line_of(record: Record) -> str:
    keys = decode_properties(record.properties).get("KEYS", "")
    return (
        f"{record.physical_offset:>12} {record.size_bytes:>7} {time_text(record.store_timestamp_ms)} "
        f"{record.topic}/{record.queue_id}/{record.queue_offset} {keys}".rstrip()
    )


@command.command("scan")
@directory_argument
@click.option("--from", "begin", default=0, help="Start at this physical offset.")
@click.option("--count", type=int, help="Stop after so many messages.")
@click.option("--topic", help="Only messages of this topic.")
@click.option("--no-crc", is_flag=True, help="Do not check the bodies.")
@click.option("--quiet", "-q", is_flag=True, help="Print the summary only.")
@progress_option
@json_option
def scan_command(
    directory: Path,
    begin: int,
    count: int | None,
    topic: str | None,
    no_crc: bool,
    quiet: bool,
    progress: bool,
    as_json: bool,
) -> None:
    """Read the log from one end to the other; with --json one JSON object per line."""
    shown = damaged = total = 0
    end = 0
    with opened(directory) as (disk, files):
        for item in read_records(disk, files.log, begin=begin, check_crc=not no_crc, progress=progress_line(progress)):
            match item:
                case Found(record) if topic is None or record.topic == topic:
                    shown += 1
                    total += record.size_bytes
                    if not quiet:
                        click.echo(json.dumps(message_of(record, body=False)) if as_json else line_of(record))
                case Damage():
                    damaged += 1
                    line = {"damage": str(item.error), "begin": item.begin, "end": item.end}
                    click.echo(json.dumps(line) if as_json else f"{item.begin:>12} DAMAGE {item.error}")
                case LogEnd(offset):
                    end = offset
                case _:
                    pass
            if count is not None and shown >= count:
                break
    summary = {"messages": shown, "bytes": total, "damaged": damaged, "log_end": end or None}
    if as_json:
        click.echo(json.dumps(summary))
    else:
        click.echo(f"{shown} messages, {total} bytes" + (f", the log ends at {end}" if end else ""))
    if damaged:
        raise CheckFound(f"{damaged} places in the log are damaged.")


@command.command("msg")
@directory_argument
@click.argument("where", metavar="OFFSET|MESSAGE_ID")
@click.option("--body", is_flag=True, help="Print the body, raw, and nothing else.")
@json_option
def msg_command(directory: Path, where: str, body: bool, as_json: bool) -> None:
    """Show one message, by its physical offset or its message id."""
    if where.isdigit() and len(where) < 32:
        offset = int(where)
    else:
        try:
            offset = parse_message_id(where)[1]
        except WireError as error:
            raise UsageError(str(error)) from None
    with opened(directory) as (disk, files):
        try:
            record = read_one(disk, files.log, offset).record
        except CorruptRecord as error:
            raise RefmqError(f"there is no message at {offset}: {error}") from None
    if body:
        sys.stdout.buffer.write(record.body)
        return
    message = message_of(record, body=True)
    if as_json:
        print_json(message)
    else:
        print_table(("field", "value"), list(message.items()))


@command.command("cq")
@directory_argument
@click.argument("topic", required=False)
@click.argument("queue_id", type=int, required=False)
@click.option("--from", "begin", default=0, help="Start at this queue offset.")
@click.option("--count", default=100, show_default=True, help="Show so many units.")
@json_option
def cq_command(directory: Path, topic: str | None, queue_id: int | None, begin: int, count: int, as_json: bool) -> None:
    """Show the units of one queue; without a topic, all queues and how far they go."""
    with opened(directory) as (disk, files):
        if topic is None:
            chosen = files.queues
        else:
            chosen = tuple(q for q in files.queues if q.topic == topic and queue_id in (None, q.queue_id))
            if not chosen:
                raise UsageError(f"there is no queue {topic}" + ("" if queue_id is None else f"/{queue_id}"))
        if queue_id is None:
            names: tuple[str, ...] = ("topic", "queue_id", "first", "end", "units")
            rows: list[tuple[object, ...]] = []
            for queue in chosen:
                first = queue.sequence.begin // 20
                end, units = first, 0
                for unit in queue_units(disk, queue):
                    end, units = unit[0] + 1, units + 1
                rows.append((queue.topic, queue.queue_id, first, end, units))
        else:
            names = ("queue_offset", "physical_offset", "size_bytes", "tags_code")
            rows = []
            for found in queue_units(disk, chosen[0], begin):
                if len(rows) >= count:
                    break
                rows.append(found)
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_table(names, rows)


@command.command("index")
@directory_argument
@click.option("--topic", help="With --key: the topic of the messages.")
@click.option("--key", help="Find the messages that have this key.")
@json_option
def index_command(directory: Path, topic: str | None, key: str | None, as_json: bool) -> None:
    """Show the index files; with --topic and --key what they know of a key."""
    if (topic is None) != (key is None):
        raise UsageError("--topic and --key belong together")
    with opened(directory) as (disk, files):
        if topic is not None and key is not None:
            wanted = key_hash(topic, key)
            names: tuple[str, ...] = ("file", "entry", "physical_offset", "store_ms")
            rows: list[tuple[object, ...]] = [
                (index.path, entry.number, entry.physical_offset, entry.store_ms)
                for index in files.indexes
                for entry in index_entries(disk, index)
                if entry.hash == wanted
            ]
        else:
            names = ("file", "slots", "entries", "used", "begin_offset", "end_offset", "begin_ms", "end_ms")
            rows = [
                (
                    index.path,
                    index.slots,
                    index.entries,
                    max(0, index.next_entry - 1),
                    index.begin_offset,
                    index.end_offset,
                    index.begin_ms,
                    index.end_ms,
                )
                for index in files.indexes
            ]
    if as_json:
        print_json([dict(zip(names, row, strict=True)) for row in rows])
    else:
        print_table(names, rows)


# --- checks and changes -----------------------------------------------------------------------------------------------


@command.command("verify")
@directory_argument
@click.option("--no-crc", is_flag=True, help="Do not check the bodies.")
@click.option("--strict", is_flag=True, help="Count notes as findings, too.")
@progress_option
@force_option
@json_option
def verify_command(directory: Path, no_crc: bool, strict: bool, progress: bool, in_use: bool, as_json: bool) -> None:
    """Compare log, queues and index with each other. Exit code 3 when something is wrong."""
    with opened(directory, in_use=in_use) as (disk, _):
        result = verify_store(disk, check_crc=not no_crc, progress=progress_line(progress))
    counted = [f for f in result.flaws if strict or f.severity is Severity.DAMAGE]
    if as_json:
        print_json(
            {
                "sound": not counted,
                "records": result.records,
                "units": result.units,
                "index_entries": result.index_entries,
                "log_begin": result.log_begin,
                "log_end": result.log_end,
                "findings": [
                    {"severity": f.severity.value, "where": f.where, "sentence": f.sentence} for f in result.flaws
                ],
            }
        )
    else:
        for flaw in result.flaws:
            click.echo(f"{flaw.severity.value:6} {flaw.where}: {flaw.sentence}")
        click.echo(
            f"{result.records} messages in [{result.log_begin}, {result.log_end}), {result.units} queue units, "
            f"{result.index_entries} index entries"
        )
    if counted:
        raise CheckFound(f"{len(counted)} findings, the first: {counted[0].where}: {counted[0].sentence}")


@command.command("export")
@directory_argument
@click.option("--out", type=click.Path(path_type=Path), help="Write here instead of to stdout.")
@click.option("--topic", help="Only messages of this topic.")
@progress_option
def export_command(directory: Path, out: Path | None, topic: str | None, progress: bool) -> None:
    """Write every message with its body as one JSON object per line."""
    damaged = written = 0
    stream = out.open("w") if out is not None else sys.stdout
    try:
        with opened(directory) as (disk, files):
            for item in read_records(disk, files.log, progress=progress_line(progress)):
                if isinstance(item, Damage):
                    damaged += 1
                elif isinstance(item, Found) and topic in (None, item.record.topic):
                    written += 1
                    stream.write(json.dumps(message_of(item.record, body=True)) + "\n")
    finally:
        if out is not None:
            stream.close()
    click.echo(f"{written} messages", err=True)
    if damaged:
        raise CheckFound(f"{damaged} damaged places in the log were left out.")


@command.command("diff")
@directory_argument
@click.argument("other", metavar="OTHER_DIR", type=click.Path(path_type=Path))
@click.option("--no-index", is_flag=True, help="Do not compare the indexes.")
@json_option
def diff_command(directory: Path, other: Path, no_index: bool, as_json: bool) -> None:
    """Compare two stores, message by message, unit by unit. Exit code 3 when they differ."""
    found = []
    with opened(directory) as (left, _), opened(other) as (right, _):
        for difference in diff_stores(left, right, with_index=not no_index):
            found.append(difference)
            if len(found) >= DIFFERENCES_SHOWN_MAX:
                break
    if as_json:
        print_json([{"where": d.where, "left": d.left, "right": d.right} for d in found])
    else:
        for difference in found:
            click.echo(f"{difference.where}: {difference.left} | {difference.right}")
    if found:
        raise CheckFound(f"{directory} and {other} differ, first at {found[0].where}.")


@command.command("repair")
@directory_argument
@click.option("--dry-run", is_flag=True, help="Say what would be done and do nothing.")
@click.option("--cut-damage", is_flag=True, help="Cut the log at damage, even though good messages after it are lost.")
@json_option
def repair_command(directory: Path, dry_run: bool, cut_damage: bool, as_json: bool) -> None:
    """Do what a start does: cut what a crash left, rebuild queues and index, and stop cleanly."""
    from refmq.cli._store_repair import repair

    with opened(directory, in_use=False) as (disk, files):
        now_ms = TimestampMs(int(time.time() * 1000))
        outcome = asyncio.run(repair(disk, files, now_ms, dry_run=dry_run, cut_damage=cut_damage))
    if as_json:
        print_json(outcome)
        return
    would = "would be" if dry_run else "were"
    for what, path in outcome["files"]:  # of a dry run only
        click.echo(f"{path} {would} {what}")
    click.echo(
        f"the log is valid to {outcome['valid_to']}, {outcome['bytes_cut']} bytes after it {would} cut, "
        f"{outcome['records_dispatched']} messages {would} dispatched"
    )
    for note in outcome["notes"]:
        click.echo(note)
