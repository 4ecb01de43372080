"""The commands of ``refmq trace`` that write: a trace that nobody ran, and a trace as Parquet."""

from __future__ import annotations

import time
from pathlib import Path

import click

from refmq.cli.output import print_json, warn
from refmq.errors import UsageError
from refmq.verify.recordings import find_recordings

EVENTS_MAX = 10**10


@click.command("synth")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--events", type=click.IntRange(1, EVENTS_MAX), required=True, help="About how many, of all nodes.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="The same one makes the same trace.")
@click.option("--violations", type=click.IntRange(0), default=0, show_default=True, help="So many of each kind.")
@click.option("--json", "as_json", is_flag=True, help="Print what was planted as one JSON document.")
def synth(folder: Path, events: int, seed: int, violations: int, as_json: bool) -> None:
    """Write the trace of a cluster that nobody ran into FOLDER, with violations of which all is known."""
    from refmq.trace.columns import record_dtype

    record_dtype()  # says so when numpy is missing
    from refmq.verify.synth.streams import SyntheticWriter, synthetic

    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder} is not empty; a trace of its own needs a folder of its own.")
    whole = synthetic(events, seed, violations)
    writer = SyntheticWriter(folder)
    writer.write(whole)
    planted = [{"kind": plant.kind, "broker": plant.broker, "round": plant.round} for plant in whole.plants]
    if as_json:
        breaks = sorted(whole.breaks)
        print_json({"events": writer.written, "plants": planted, "tales": list(whole.tales), "breaks": breaks})
        return
    click.echo(f"{writer.written} events in {len(writer.paths)} files in {folder}")
    if whole.breaks:
        count = len(planted) + len(whole.tales)
        click.echo(f"{count} violations planted, of {len(whole.breaks)} promises: {', '.join(sorted(whole.breaks))}")


@click.command("export")
@click.argument("place", type=click.Path(path_type=Path, exists=True))
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--master", help="Let Spark write, a task for each life of a node; local[*] is this machine.")
def export(place: Path, folder: Path, master: str | None) -> None:
    """Write the trace in PLACE as Parquet into FOLDER, a file for each life of a node."""
    from refmq.verify.spark.environment import require_parquet, require_spark

    require_parquet()
    from refmq.verify.spark.export import ExportWork, Written

    recordings, begun = find_recordings([place]), time.monotonic()
    for gap in recordings.gaps:
        warn(str(gap))
    work = ExportWork(recordings.streams, folder=str(folder.absolute()))
    if master is None:
        written = [file for number in range(len(work.streams)) for file in work.run(number)]
    else:
        require_spark()
        from refmq.verify.spark.session import SparkEngine, spark_session

        with spark_session(master) as session:
            written = [Written(*row) for row in SparkEngine(session).export(work)]  # type: ignore[arg-type]  # columns of Spark
    events, size = sum(file.events for file in written), sum(file.size_bytes for file in written)
    per_event = size / max(events, 1)
    seconds = time.monotonic() - begun
    click.echo(f"{events} events in {len(written)} files, {per_event:.1f} bytes an event, in {seconds:.1f} s")
