"""`python -m conformance`: replay saved histories and run campaigns."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from conformance.base import REGRESSIONS, replay_file, replay_verdict
from conformance.campaign.kinds import STEPS
from conformance.campaign.ledger import Ledger, total, version
from conformance.campaign.run import FOLDER, run_campaign
from conformance.campaign.workers import Job
from conformance.coverage import empty_cells, stale_reasons
from conformance.engines import cluster_engine, store_engine
from refmq.cli._boundary import report
from refmq.errors import CheckFound


@click.group(help="Histories against an engine. Exit codes: 0 done, 1 failed, 2 usage, 3 a promise was broken.")
def command() -> None:
    pass


@command.command("replay")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--engine", default="reference", show_default=True, help="Which engine lives through the history.")
@click.option("--verbose", "-v", is_flag=True, help="Print the steps and everything that was observed.")
def replay_command(files: tuple[Path, ...], engine: str, verbose: bool) -> None:
    """Replay saved histories: the FILES given, or all of conformance/regressions."""
    broken = 0
    for path in files or tuple(sorted(REGRESSIONS.glob("*.json"))):
        violations = replay_file(path, engine=engine, verbose=verbose)
        click.echo(replay_verdict(path, violations))
        for violation in violations:
            click.echo(f"  {violation}")
        broken += bool(violations)
    if broken:
        raise CheckFound(f"{broken} of the replayed histories break a promise.")


def campaign_command(kind: str, what: str) -> None:
    """Adds the command that runs campaigns of a kind of histories."""

    @command.command(kind, help=f"Run a campaign of histories of {what}; what breaks is counted, saved, and passed.")
    @click.option("--minutes", default=1.0, show_default=True, help="How long the campaign runs.")
    @click.option("--seed", default=0, show_default=True, help="The first seed; what this code has lived is passed.")
    @click.option("--steps", default=STEPS[kind], show_default=True, help="Steps of a history.")
    @click.option("--engine", default="reference", show_default=True)
    @click.option("--jobs", default=1, show_default=True, help="Processes at work.")
    @click.option("--out", type=click.Path(path_type=Path), default=FOLDER, help="Where the ledger and findings go.")
    def run(minutes: float, seed: int, steps: int, engine: str, jobs: int, out: Path) -> None:
        _check_engine(kind, engine)
        job = Job(kind, engine, steps)
        result = run_campaign(job, minutes=minutes, jobs=jobs, first_seed=seed, folder=out)
        if not result.is_clean:
            counts = result.findings.counts()
            broken = f"{sum(counts.values())} of {result.histories} histories"
            raise CheckFound(f"{broken} broke a promise, in {len(counts)} ways.")


def _check_engine(kind: str, engine: str) -> None:
    """Raises `UsageError` for an engine that is not there: in a campaign every history would say so."""
    (store_engine if kind == "store" else cluster_engine)(engine)


for _kind, _what in (("store", "a store"), ("cluster", "whole clusters"), ("group", "real consumers and producers")):
    campaign_command(_kind, _what)


@command.command("coverage")
@click.argument("kinds", nargs=-1, type=click.Choice([*STEPS]))
@click.option("--engine", default="reference", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=FOLDER, help="Where the ledger is.")
@click.option("--all", "show_all", is_flag=True, help="Print the cells that are filled as well.")
def coverage_command(kinds: tuple[str, ...], engine: str, out: Path, show_all: bool) -> None:
    """What the campaigns of this code have made happen; exit code 3 for empty cells and broken promises."""
    empty = broken = stale = 0
    for kind in kinds or tuple(STEPS):
        histories, findings, cells = total(Ledger(out / "ledger.jsonl").of(kind, engine, version()))
        missing, wrong = empty_cells(kind, cells), stale_reasons(kind, cells)
        empty += len(missing)
        stale += len(wrong)
        broken += findings
        click.echo(f"{kind} on {engine}: {histories} histories, {len(cells)} cells are filled, {len(missing)} are not")
        for cell, count in sorted(cells.items()) if show_all else ():
            click.echo(f"  {count:8} {cell}")
        for cell in missing:
            click.echo(f"     empty {cell}")
        for cell in wrong:
            click.echo(f"  happened {cell}, and a reason says that it cannot")
    if empty or broken or stale:
        sentence = f"{empty} cells are empty, {stale} reasons are wrong, {broken} histories broke a promise."
        raise CheckFound(sentence)


@command.command("differ")
@click.option("--histories", default=10_000, show_default=True, help="How many are generated.")
@click.option("--seed", default=0, show_default=True, help="The first seed; one history per seed.")
@click.option("--steps", default=60, show_default=True, help="Steps of a history.")
def differ_command(histories: int, seed: int, steps: int) -> None:
    """Run store histories on the reference and on the C store: same answers, trace, and effects on the disk."""
    from conformance.store.differential import compare_seeds

    count, found = compare_seeds(seed, histories, steps=steps)
    if found is not None:
        raise CheckFound(f"the C store is not the reference. {found}")
    click.echo(f"{count.compared} histories are alike; {count.refused} need what the C store does not have")


@command.command("frames")
@click.option("--frames", default=100_000, show_default=True, help="How many are sent to each broker.")
@click.option("--seed", default=0, show_default=True, help="The first seed; one for each pair of brokers.")
def frames_command(frames: int, seed: int) -> None:
    """Send the same random frames to a broker on each engine: same answers, and in the end the same files."""
    from conformance.frames.drive import compare

    count, found = compare(seed, frames)
    if found is not None:
        raise CheckFound(f"the engines differ. {found}")
    click.echo(f"{count} frames were answered alike, and the stores are the same")


@command.command("judged")
@click.option("--events", default=100_000, show_default=True, help="About how many events are recorded and judged.")
@click.option("--engine", default="fast", show_default=True, help="Who serves.")
def judged_command(events: int, engine: str) -> None:
    """Record `refmq serve` under clients over several lives, and let TLC judge the recording."""
    from conformance.judged.recording import record_and_judge

    refused = []
    for verdict in record_and_judge(events, engine):
        answer = verdict.answer
        speed = f"{answer.events_per_second:,.0f} a second of processor"
        click.echo(f"{verdict.protocol}: {answer.events} events, {speed}{'' if answer.accepted else ': REFUSED'}")
        refused += [] if answer.accepted else [answer.reason]
    if refused:
        raise CheckFound(refused[0])


def main() -> int:
    try:
        command.main(prog_name="python -m conformance", standalone_mode=False)
    except Exception as error:
        return report(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
