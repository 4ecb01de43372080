"""`python -m conformance`: replay saved histories and run campaigns."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from conformance.base import REGRESSIONS, replay_file, replay_line, replay_verdict
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


@command.command("store")
@click.option("--minutes", default=1.0, show_default=True, help="How long the campaign runs.")
@click.option("--seed", default=0, show_default=True, help="The first seed; one history per seed.")
@click.option("--steps", default=60, show_default=True, help="Steps of a history.")
@click.option("--engine", default="reference", show_default=True)
def store_command(minutes: float, seed: int, steps: int, engine: str) -> None:
    """Run a campaign of store histories; whatever breaks is shrunk and saved as a regression."""
    from conformance.store.campaign import run_campaign

    saved = run_campaign(minutes=minutes, first_seed=seed, steps=steps, engine=engine)
    if saved is not None:
        raise CheckFound(f"a promise was broken. Replay with: {replay_line(saved)}")


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


@command.command("cluster")
@click.option("--minutes", default=1.0, show_default=True, help="How long the campaign runs.")
@click.option("--seed", default=0, show_default=True, help="The first seed; one history per seed.")
@click.option("--steps", default=40, show_default=True, help="Steps of a history.")
@click.option("--engine", default="reference", show_default=True)
def cluster_command(minutes: float, seed: int, steps: int, engine: str) -> None:
    """Run a campaign of cluster histories; whatever breaks is shrunk and saved as a regression."""
    from conformance.cluster.campaign import run_campaign

    saved = run_campaign(minutes=minutes, first_seed=seed, steps=steps, engine=engine)
    if saved is not None:
        raise CheckFound(f"a promise was broken. Replay with: {replay_line(saved)}")


@command.command("group")
@click.option("--minutes", default=1.0, show_default=True, help="How long the campaign runs.")
@click.option("--seed", default=0, show_default=True, help="The first seed; one history per seed.")
@click.option("--steps", default=30, show_default=True, help="Steps of a history.")
@click.option("--engine", default="reference", show_default=True)
def group_command(minutes: float, seed: int, steps: int, engine: str) -> None:
    """Run a campaign of histories of real consumers; whatever breaks is shrunk and saved as a regression."""
    from conformance.cluster.campaign import run_campaign

    saved = run_campaign(minutes=minutes, first_seed=seed, steps=steps, engine=engine, kind="group")
    if saved is not None:
        raise CheckFound(f"a promise was broken. Replay with: {replay_line(saved)}")


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
