"""``refmq verify``: did the cluster keep its promises? Judges recorded traces, and compares the files of stores."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import click

from refmq.cli import _verify_stores
from refmq.cli.output import warn
from refmq.errors import CheckFound, UsageError
from refmq.verify.local import LOCAL_BYTES_MAX, Progress, judge_here
from refmq.verify.oracles import Promises
from refmq.verify.page import as_page
from refmq.verify.picture import Picture, picture_of_lines
from refmq.verify.recordings import Reading, Recordings, find_recordings
from refmq.verify.report import as_data, text_lines
from refmq.verify.verdicts import Judgement

PROGRESS_INTERVAL_S = 0.2
LOCAL_MASTER = "local[*]"
CLOCK_SLACK_MS = 1000
"""How much later than its record an event of a real broker may be."""


class EngineChoice(StrEnum):
    """Who judges."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


@click.command("verify")
@click.argument("places", type=click.Path(path_type=Path, exists=True), nargs=-1, required=True)
@click.option(
    "--engine",
    type=click.Choice([choice.value for choice in EngineChoice]),
    default=EngineChoice.AUTO.value,
    show_default=True,
    help="The oracles in this process, or Spark; auto takes Spark for what is large, if it is there.",
)
@click.option("--master", help=f"Where Spark runs; implies --engine spark.  [default: {LOCAL_MASTER}]")
@click.option("--conf", "settings", multiple=True, help="A setting of Spark, NAME=VALUE (may be repeated).")
@click.option(
    "--flush",
    type=click.Choice(["sync", "async"]),
    default="async",
    show_default=True,
    help="Whether the brokers flush before they answer; with sync more is promised.",
)
@click.option("--settled", is_flag=True, help="The traces end with a quiet time in which everything came to rest.")
@click.option("--exact", is_flag=True, help="With Spark: ask the oracles about every event, whatever digests show.")
@click.option("--places-only", is_flag=True, help="With Spark: judge only what digests of places show.")
@click.option("--follow", "follows", is_flag=True, help="With Spark: watch one growing folder until Ctrl-C.")
@click.option("--seconds", type=click.FloatRange(0), help="With --follow: stop after so long.")
@click.option(
    "--replicas", is_flag=True, help="The stores are of one master and its slaves: compare their logs as well."
)
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Write the report as JSON.")
@click.option("--html", "html_file", type=click.Path(path_type=Path, dir_okay=False), help="Write a page with charts.")
def command(
    places: tuple[Path, ...],
    engine: str,
    master: str | None,
    settings: tuple[str, ...],
    flush: str,
    settled: bool,
    exact: bool,
    places_only: bool,
    follows: bool,
    seconds: float | None,
    replicas: bool,
    json_file: Path | None,
    html_file: Path | None,
) -> None:
    """Judge the traces in PLACES: files, or directories that nodes and clients wrote with --trace.

    PLACES may be the directories of stopped or copied stores instead, ours or of a real broker: their logs are compared
    with their queues and indexes.

    Exit code 3 when a promise was broken.
    """
    choice = EngineChoice.SPARK if master is not None else EngineChoice(engine)
    spark = Spark(master or LOCAL_MASTER, settings_of(settings))
    if follows:
        follow(places, spark, seconds)
        return
    stores = _verify_stores.stores_of(places)
    if stores:
        judge_stores(stores, choice, spark, replicas, json_file)
        return
    recordings = find_recordings(places)
    for gap in recordings.gaps:
        warn(str(gap))
    promises = Promises(flush_sync=flush == "sync", settled=settled, clock_slack_ms=CLOCK_SLACK_MS)
    needs_spark = exact or places_only
    if choice is EngineChoice.LOCAL and needs_spark:
        raise UsageError("--exact and --places-only are ways of Spark; the oracles alone look at everything.")
    if choice is EngineChoice.AUTO:
        choice = chosen_engine(recordings, needs_spark)
    with Told() as told:
        if choice is EngineChoice.LOCAL:
            judgement, picture = by_oracles(recordings, promises, told.tell, html_file is not None)
        else:
            judgement, picture = by_spark(
                recordings, promises, spark, told.tell, exact, places_only, html_file is not None
            )
    report(judgement, picture, json_file, html_file)


@dataclass(frozen=True, slots=True)
class Spark:
    """Where Spark runs, and how."""

    master: str
    settings: dict[str, str]


def settings_of(given: Sequence[str]) -> dict[str, str]:
    """NAME=VALUE, as `--conf` has them."""
    pairs = [text.partition("=") for text in given]
    if any(not name or not equals for name, equals, _ in pairs):
        raise UsageError("--conf wants NAME=VALUE.")
    return {name: value for name, _, value in pairs}


def follow(places: tuple[Path, ...], spark: Spark, seconds: float | None) -> None:
    """Says a line for each range of places whose sides differ, and `CheckFound` in the end if there was one."""
    if len(places) != 1 or not places[0].is_dir():
        raise UsageError("--follow watches one folder.")
    from refmq.verify.spark.environment import require_spark

    require_spark()
    from refmq.verify.spark.follow import follow as follow_by
    from refmq.verify.spark.session import spark_session
    from refmq.verify.spark.watch import Watch

    watch = Watch()
    with spark_session(spark.master, spark.settings) as session:
        click.echo(f"watching {places[0]}; Ctrl-C ends it", err=True)
        alarms = follow_by(session, places[0].absolute(), click.echo, seconds=seconds, watch=watch)
    click.echo(f"{watch.events} events of places were seen, {alarms} alarms")
    if alarms:
        raise CheckFound(f"{alarms} ranges of places differ; `refmq verify {places[0]}` shows what it is")


def judge_stores(
    stores: list[Path], choice: EngineChoice, spark: Spark, replicas: bool, json_file: Path | None
) -> None:
    """The reference for what is small, Spark for the rest, and for what only it can do."""
    needs_spark = replicas or json_file is not None
    if choice is EngineChoice.LOCAL and needs_spark:
        raise UsageError(
            "--replicas and --json are Spark's where stores are judged; `refmq store verify` has a --json."
        )
    if choice is EngineChoice.AUTO and not needs_spark and _verify_stores.is_small(stores):
        choice = EngineChoice.LOCAL
    with Told() as told:
        if choice is EngineChoice.LOCAL:
            _verify_stores.here(stores, told.tell)
        else:
            _verify_stores.by_spark(stores, spark.master, spark.settings, replicas, json_file, told.tell)


def chosen_engine(recordings: Recordings, needs_spark: bool) -> EngineChoice:
    """Spark for what is large, where there is Spark."""
    if needs_spark:
        return EngineChoice.SPARK
    if recordings.size_bytes <= LOCAL_BYTES_MAX:
        return EngineChoice.LOCAL
    from refmq.verify.spark.environment import why_missing

    missing = why_missing()
    if missing:
        warn(f"this trace is large, and the oracles judge it slowly; Spark would be faster. {missing}")
        return EngineChoice.LOCAL
    return EngineChoice.SPARK


def by_oracles(
    recordings: Recordings, promises: Promises, progress: Progress, draws: bool
) -> tuple[Judgement, Picture]:
    judgement = judge_here(recordings, promises, progress)
    picture = picture_of_lines(Reading().of_all(recordings.streams)) if draws else Picture()
    return judgement, picture


def by_spark(
    recordings: Recordings,
    promises: Promises,
    spark: Spark,
    progress: Progress,
    exact: bool,
    places_only: bool,
    draws: bool,
) -> tuple[Judgement, Picture]:
    from refmq.verify.spark.environment import require_spark

    require_spark()
    from refmq.verify.spark.judge import Wishes, judge_by, picture_by
    from refmq.verify.spark.session import SparkEngine, spark_session

    progress(0.0, f"starting Spark at {spark.master}")
    with spark_session(spark.master, spark.settings) as session:
        engine = SparkEngine(session)
        wishes = Wishes(promises, exact, places_only, bins=draws, seed=time.time_ns())
        judgement = judge_by(engine, recordings, wishes, progress)
        return judgement, picture_by(engine) if draws else Picture()


def report(judgement: Judgement, picture: Picture, json_file: Path | None, html_file: Path | None) -> None:
    """Says what was found; `CheckFound` if something was."""
    for line in text_lines(judgement):
        click.echo(line)
    if json_file is not None:
        json_file.write_text(json.dumps(as_data(judgement), indent=2, ensure_ascii=False) + "\n")
    if html_file is not None:
        html_file.write_text(as_page(judgement, picture))
    if judgement.broken:
        raise CheckFound(f"{promises_of([verdict.invariant for verdict in judgement.broken])} broken")


def promises_of(names: Sequence[str]) -> str:
    return f"{len(names)} promise{'s' if len(names) > 1 else ''} ({', '.join(names)})"


class Told:
    """A line on a terminal that says how far a judgement is, and is gone in the end."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._shown_s = 0.0

    def __enter__(self) -> Told:
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_shown:
            click.echo("\r\x1b[K", nl=False, err=True)

    def tell(self, part: float, what: str) -> None:
        if self._is_shown and time.monotonic() > self._shown_s + PROGRESS_INTERVAL_S:
            self._shown_s = time.monotonic()
            click.echo(f"\r\x1b[K{part:.0%} {what}", nl=False, err=True)
