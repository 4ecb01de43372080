"""`python -m fuzz`: damaged input for everything that reads. Exit codes: 0 done, 2 usage, 3 something broke."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from fuzz import native_targets
from fuzz.campaign import guard, outcome, run, save
from fuzz.targets import TARGETS
from refmq.cli._boundary import report
from refmq.errors import CheckFound, MissingTool, UsageError


@click.group()
def command() -> None:
    """Feed damaged input to everything that reads bytes of somebody else."""


def _chosen(names: tuple[str, ...]) -> list[str]:
    unknown = [name for name in names if name not in TARGETS]
    if unknown:
        raise UsageError(f"There is no target {unknown[0]}; there are {', '.join(TARGETS)}.")
    return list(names or TARGETS)


@command.command("run")
@click.argument("targets", nargs=-1)
@click.option("--minutes", default=1.0, show_default=True, help="How long the campaign runs.")
@click.option("--seed", default=0, show_default=True, help="Decides everything that is random.")
def run_command(targets: tuple[str, ...], minutes: float, seed: int) -> None:
    """Run a campaign over TARGETS, all of them if none is named; what breaks is shrunk and kept in fuzz/found."""
    guard()
    found, fed = run(_chosen(targets), minutes=minutes, seed=seed, say=lambda text: click.echo(text, err=True))
    click.echo("\n".join(f"{name:14} {count:9} inputs" for name, count in sorted(fed.items())))
    if found is not None:
        path = save(found)
        raise CheckFound(f"{found.target}: {found.what}. Replay with: python -m fuzz replay {found.target} {path}")


@command.command("native")
@click.argument("targets", nargs=-1)
@click.option("--minutes", default=1.0, show_default=True, help="How long all targets together run.")
@click.option("--seed", default=0, show_default=True, help="Decides everything that is random.")
def native_command(targets: tuple[str, ...], minutes: float, seed: int) -> None:
    """Fuzz what is C with libFuzzer: TARGETS of fuzz/native, all of them if none is named. Skipped without clang."""
    try:
        native_targets.run_all(list(targets), minutes=minutes, seed=seed, say=click.echo)
    except MissingTool as error:
        click.echo(f"skipped: {error}")


@command.command("replay")
@click.argument("target")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
def replay_command(target: str, files: tuple[Path, ...]) -> None:
    """Feed FILES to a TARGET again."""
    guard()
    (name,) = _chosen((target,))
    broken = [(path, what) for path in files if (what := outcome(name, path.read_bytes())) is not None]
    for path, what in broken:
        click.echo(f"{path}: {what}")
    if broken:
        raise CheckFound(f"{len(broken)} of {len(files)} inputs break {name}.")


@command.command("ls")
def ls_command() -> None:
    """List the targets."""
    for name in TARGETS:
        click.echo(name)


def main() -> int:
    try:
        command.main(prog_name="python -m fuzz", standalone_mode=False)
    except Exception as error:
        return report(error)
    return 0


if __name__ == "__main__":
    sys.exit(main())
