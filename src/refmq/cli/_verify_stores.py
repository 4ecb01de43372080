"""``refmq verify`` on the directories of stores: do log, queues and index agree?"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from refmq.errors import CheckFound, UsageError
from refmq.inspect.files import LOG_DIRECTORY
from refmq.inspect.verify import verify_store
from refmq.net.files import RealDisk
from refmq.verify.local import Progress

if TYPE_CHECKING:
    from refmq.verify.spark.stores import StoreJudgement

FLAWS_TOLD = 20
LOCAL_LOG_BYTES_MAX = 256 << 20
"""The reference walks through so much of a log in some ten seconds."""


def store_at(place: Path) -> Path | None:
    """The directory of a store: the place itself, or `store` in it."""
    return next((path for path in (place, place / "store") if (path / LOG_DIRECTORY).is_dir()), None)


def stores_of(places: Sequence[Path]) -> list[Path]:
    """The stores among some places; all or none of them are stores."""
    found = [store_at(place) for place in places]
    stores = [store for store in found if store is not None]
    if stores and len(stores) < len(found):
        raise UsageError("Some of these are stores and some are not: judge traces and stores apart.")
    return stores


def is_small(stores: Sequence[Path]) -> bool:
    size = sum(path.stat().st_size for store in stores for path in (store / LOG_DIRECTORY).iterdir())
    return size <= LOCAL_LOG_BYTES_MAX


def here(stores: Sequence[Path], progress: Progress) -> None:
    """The reference looks at one store after the other."""
    damaged = 0
    for store in stores:
        disk = RealDisk(store)
        try:
            found = verify_store(disk, progress=_told(progress, str(store)))
        finally:
            disk.close()
        click.echo(f"{store}: {found.records} records, {found.units} units, {found.index_entries} index entries")
        for flaw in found.flaws[:FLAWS_TOLD]:
            click.echo(f"  {flaw.severity}: {flaw.where}: {flaw.sentence}")
        damaged += not found.is_sound
    if damaged:
        raise CheckFound(f"{damaged} of {len(stores)} stores damaged")


def _told(progress: Progress, what: str) -> Callable[[int, int], None]:
    return lambda done, total: progress(done / max(total, 1), what)


def by_spark(
    stores: Sequence[Path],
    master: str,
    settings: dict[str, str],
    replicas: bool,
    json_file: Path | None,
    progress: Progress,
) -> None:
    from refmq.verify.spark.environment import require_spark

    require_spark()
    from refmq.verify.spark.session import SparkEngine, spark_session
    from refmq.verify.spark.stores import judge_stores

    progress(0.0, f"starting Spark at {master}")
    with spark_session(master, settings) as session:
        absolute = [store.absolute() for store in stores]
        judgement = judge_stores(
            SparkEngine(session), absolute, replicas=replicas, seed=time.time_ns(), progress=progress
        )
    tell(judgement, json_file)


def tell(judgement: StoreJudgement, json_file: Path | None) -> None:
    """Says what was found; `CheckFound` if something is damaged."""
    speed = judgement.log_bytes / 1e6 / max(judgement.seconds, 1e-9)
    click.echo(
        f"{len(judgement.stores)} stores: {judgement.records} records, {judgement.units} units, "
        f"{judgement.keys} index entries in {judgement.seconds:.1f} s ({speed:.0f} MB of log a second)"
    )
    for flaw in judgement.flaws[:FLAWS_TOLD]:
        click.echo(f"  {'note' if flaw.is_note else flaw.promise}: {flaw.store}: {flaw.sentence}")
    if len(judgement.flaws) > FLAWS_TOLD:
        click.echo(f"  ... and {len(judgement.flaws) - FLAWS_TOLD} more")
    if json_file is not None:
        json_file.write_text(json.dumps(asdict(judgement), indent=2) + "\n")
    if judgement.damage:
        raise CheckFound(f"{len(judgement.damage)} places of the stores do not agree with the log")
