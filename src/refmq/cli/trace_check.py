"""``refmq trace check``: TLC judges a recording."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from refmq.cli.output import json_option, print_json, print_table
from refmq.errors import CheckFound
from refmq.verify.spec.catalogue import find_spec_dir
from refmq.verify.spec.check import RunOptions
from refmq.verify.spec.long_trace import CHECK_MAX
from refmq.verify.spec.recordings import PROTOCOLS, Settings, Verdict, judge_recording, read_recording
from refmq.verify.spec.tlc import DEFAULT_HEAP, find_tlc


@click.command("check")
@click.argument("place", type=click.Path(path_type=Path))
@click.option("--protocol", "protocols", multiple=True, type=click.Choice(PROTOCOLS), help="Only these (default: all).")
@click.option(
    "--flush",
    type=click.Choice(["async", "sync"]),
    default="async",
    show_default=True,
    help="The flush mode that the broker promised (flushDiskType).",
)
@click.option(
    "--check-max",
    type=click.IntRange(0),
    default=CHECK_MAX,
    show_default=True,
    help="How often the broker asks about a half message (transactionCheckMax).",
)
@click.option("--spec-dir", type=click.Path(path_type=Path), help="Folder of the specifications.")
@click.option("--jar", type=click.Path(path_type=Path), help="tla2tools.jar to use.")
@click.option("--heap", default=DEFAULT_HEAP, show_default=True, help="Memory of TLC.")
@click.option("--timeout", "timeout_s", type=click.IntRange(1), help="Give up after this many seconds for a protocol.")
@json_option
def command(
    place: Path,
    protocols: tuple[str, ...],
    flush: Literal["async", "sync"],
    check_max: int,
    spec_dir: Path | None,
    jar: Path | None,
    heap: str,
    timeout_s: int | None,
    as_json: bool,
) -> None:
    """Let TLC judge the recording in PLACE: are its events behaviours of the specifications?

    Exit code 3 when they are not. Store, transactions and consumers of each broker are judged, each with what it
    concerns.
    """
    folder = find_spec_dir(spec_dir)
    recording = read_recording(place)
    settings = Settings(sync_flush=flush == "sync", check_max=check_max)
    options = RunOptions(heap=heap, timeout_s=timeout_s)
    tlc = find_tlc(jar)
    with tlc.threads(1):
        verdicts = list(judge_recording(tlc, folder, recording, options, settings, protocols or PROTOCOLS))
    if as_json:
        print_json([as_object(verdict) for verdict in verdicts])
    else:
        print_table(["NODE", "PROTOCOL", "EVENTS", "EVENTS/S", "VERDICT"], [row(verdict) for verdict in verdicts])
    refused = [verdict for verdict in verdicts if not verdict.answer.accepted]
    if refused:
        first = refused[0]
        raise CheckFound(f"{first.protocol} of {first.node}: {first.answer.reason}")


def row(verdict: Verdict) -> tuple[str, str, int, str, str]:
    answer = verdict.answer
    said = "accepted" if answer.accepted else f"refused at event {answer.failed_at or '?'}"
    return verdict.node, verdict.protocol, answer.events, f"{answer.events_per_second:,.0f}", said


def as_object(verdict: Verdict) -> dict[str, object]:
    answer = verdict.answer
    return {
        "node": verdict.node,
        "protocol": verdict.protocol,
        "accepted": answer.accepted,
        "events": answer.events,
        "seconds": round(answer.seconds, 3),
        "cpu_seconds": round(answer.cpu_seconds, 3),
        "failed_at": answer.failed_at,
        "reason": answer.reason,
    }
