"""`python -m conformance.mutants`: how many mistakes in store and broker the histories find."""

from __future__ import annotations

import functools
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from conformance.base import REGRESSIONS
from conformance.mutants.cluster import SEEDED_CLUSTER
from conformance.mutants.cluster_arranged import SEEDED_ARRANGED
from conformance.mutants.cluster_edges import SEEDED_EDGES
from conformance.mutants.cluster_services import SEEDED_SERVICES
from conformance.mutants.cluster_waiting import SEEDED_WAITING
from conformance.mutants.equivalent import read, sort_out
from conformance.mutants.group import SEEDED_GROUP
from conformance.mutants.group_attempts import SEEDED_ATTEMPTS
from conformance.mutants.mechanical import SOURCES, Mechanical, mutants_of
from conformance.mutants.native import build, native_line, native_mistakes, try_native
from conformance.mutants.seeded import NOT_OURS, SEEDED, Seeded

KILLERS = Path(__file__).parent / "killers"
"""For a seeded mistake, the short history that finds it: NAME.json."""

BUSY = 10
"""How much longer than on an idle machine a trial may take."""

STEPS = {"store": 40, "cluster": 70, "group": 30}
"""How long the histories are that look for a mistake."""

NOT_THE_STORE = frozenset({"api", "config", "direct", "text", "values"})
"""Modules of refmq.store that are values or tools; the histories are about the rest."""


def store_modules() -> list[str]:
    folder = SOURCES / "refmq" / "store"
    names = sorted(path.stem for path in folder.glob("*.py") if not path.stem.startswith("_"))
    return [f"refmq.store.{name}" for name in names if name.split("_")[0] not in NOT_THE_STORE]


ON_THE_WAY = {
    "plane": "ack flow hold offset_requests offsets property_rules pull puts send serve topic_rules",
    "net": "broker_node broker_registration connection engine server",
    "broker": "check_rounds clients control_plane delay handed_over queue_locks registered_filters settings "
    "sound_record topics transactions",
    "broker.handlers": "admin_tables broker_info clients locks progress query queue_bounds send_back transaction",
    "nameserver": "registration serve topics",
    "protocol": "frame header_json record",
}
"""What the histories of clusters are about: the modules on the way of a message; the store has histories of its own."""


OF_CLIENTS = {
    "client": "allocate answers faults process_queue rebalance route send start_offset subscription",
    "aio": "consumer instance member offsets producer retries sending",
    "net": "client connection",
}
"""What the histories of groups are about."""

SEEDED_OF_CLUSTERS = (*SEEDED_CLUSTER, *SEEDED_SERVICES, *SEEDED_WAITING, *SEEDED_EDGES, *SEEDED_ARRANGED)
SEEDED_OF = {"store": SEEDED, "cluster": SEEDED_OF_CLUSTERS, "group": (*SEEDED_GROUP, *SEEDED_ATTEMPTS)}


def modules_of(kind: str) -> list[str]:
    if kind == "store":
        return store_modules()
    folders = ON_THE_WAY if kind == "cluster" else OF_CLIENTS
    return [f"refmq.{package}.{name}" for package, names in folders.items() for name in names.split()]


def run_trial(
    mutant: dict[str, Any], seconds: float, seed: int, histories: list[Path], kind: str = "store"
) -> dict[str, Any]:
    """One mutant in a process of its own. A process that does not end was caught hanging.

    A catch counts only if the history that made it breaks nothing without the mistake.
    """
    answer = _in_a_process(mutant, seconds, seed, histories, kind)
    if answer["caught"] and str(answer["history"]).isdigit() and _breaks_anyway(kind, int(answer["history"])):
        return {**answer, "caught": False, "by": f"seed {answer['history']} breaks without it: {answer['by']}"}
    return answer


@functools.cache
def _breaks_anyway(kind: str, seed: int) -> bool:
    return bool(_in_a_process({}, 0, seed, [], kind)["caught"])


def _in_a_process(
    mutant: dict[str, Any], seconds: float, seed: int, histories: list[Path], kind: str
) -> dict[str, Any]:
    arguments = [sys.executable, "-m", "conformance.mutants.trial", json.dumps(mutant)]
    arguments += ["--seconds", str(seconds), "--seed", str(seed), "--kind", kind, "--steps", str(STEPS[kind])]
    for path in histories:
        arguments += ["--history", str(path)]
    try:
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=seconds * BUSY + 120, check=False)
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {"caught": True, "by": "Hang: the process did not end", "history": "", "tried": 0, "seconds": seconds}
    except (IndexError, ValueError):
        return {"caught": True, "by": "UnexpectedError: the process died", "history": "", "tried": 0, "seconds": 0.0}
    return answer


@click.group(help="Mistakes put into store and broker on purpose.")
def command() -> None:
    pass


with_kind = click.option(
    "--kind",
    type=click.Choice([*SEEDED_OF]),
    default="store",
    show_default=True,
    help="Which histories look.",
)


@command.command("list")
@click.argument("modules", nargs=-1)
@with_kind
def list_command(modules: tuple[str, ...], kind: str) -> None:
    """Every mechanical mutant of the modules that histories of this kind are about."""
    for module in modules or modules_of(kind):
        for mutant in mutants_of(module):
            click.echo(f"{mutant.name:24} {mutant.rule:9} line {mutant.line:4}  {mutant.text}")


@command.command("seeded")
@click.argument("names", nargs=-1)
@click.option("--seconds", default=30.0, show_default=True, help="How long the histories may look for each.")
@click.option("--jobs", default=2, show_default=True)
@with_kind
def seeded_command(names: tuple[str, ...], seconds: float, jobs: int, kind: str) -> None:
    """Try the mistakes by hand; exit code 3 if one survives."""
    chosen = [mutant for mutant in SEEDED_OF[kind] if not names or mutant.name in names]
    survivors = 0
    with ThreadPoolExecutor(jobs) as pool:
        for mutant, outcome in zip(chosen, pool.map(lambda m: try_seeded(m, seconds, kind), chosen), strict=True):
            survivors += not outcome["caught"]
            click.echo(seeded_line(mutant, outcome))
    for bug, reason in NOT_OURS.items() if not names and kind == "store" else ():
        click.echo(f"{bug:7} {'not ours':26} {reason}")
    if survivors:
        click.echo(f"{survivors} of {len(chosen)} seeded mistakes were not found.", err=True)
        sys.exit(3)


def try_seeded(mutant: Seeded, seconds: float, kind: str = "store") -> dict[str, Any]:
    """The history that is known to catch it first; then others."""
    known = sorted(KILLERS.glob(f"{mutant.name}.json")) if kind == "store" else []
    return run_trial(mutant.to_json(), seconds, 0, known, kind)


def seeded_line(mutant: Seeded, outcome: dict[str, Any]) -> str:
    by = str(outcome["by"]).split(":")[0] if outcome["caught"] else "SURVIVES " + str(outcome["by"])
    effort = f"{outcome['tried']:5} histories {outcome['seconds']:6.1f} s"
    return f"{mutant.bug:7} {mutant.name:26} {by:22} {effort}  {mutant.text}"


@command.command("native")
@click.argument("names", nargs=-1)
@click.option("--seconds", default=60.0, show_default=True, help="How long the histories may look for each.")
def native_command(names: tuple[str, ...], seconds: float) -> None:
    """Build the C store and plane with each of their mistakes and try it; exit code 3 if one survives."""
    chosen = [mistake for mistake in native_mistakes() if not names or mistake.name in names]
    survivors = 0
    with TemporaryDirectory() as folder:
        for mistake in chosen:
            answer = try_native(build(mistake.number, Path(folder)), seconds, mistake.kind)
            survivors += not (answer["by"] or answer["differs_after"])
            click.echo(native_line(mistake, answer))
    if survivors:
        click.echo(f"{survivors} of {len(chosen)} mistakes in C were not found.", err=True)
        sys.exit(3)


@command.command("score")
@click.argument("modules", nargs=-1)
@click.option("--sample", default=100, show_default=True, help="How many mutants to try; 0 for all.")
@click.option("--seconds", default=10.0, show_default=True, help="How long the histories may look for each.")
@click.option("--seed", default=0, show_default=True, help="Chooses the sample and the first history.")
@click.option("--jobs", default=2, show_default=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Write one JSON line per mutant here as well; what stands there already is not tried again.",
)
@with_kind
def score_command(
    modules: tuple[str, ...], sample: int, seconds: float, seed: int, jobs: int, out: Path | None, kind: str
) -> None:
    """Try a sample of mechanical mutants, print those that survive and the score."""
    every, none, _ = sort_out((m for module in modules or modules_of(kind) for m in mutants_of(module)), read())
    chosen = random.Random(seed).sample(every, sample) if 0 < sample < len(every) else every
    histories = sorted(REGRESSIONS.glob(f"{kind}-*.json"))
    if kind == "store":  # every run replays them
        histories += sorted(KILLERS.glob("*.json"))
    click.echo(f"seed {seed}: {len(chosen)} of {len(every)} mutants, {seconds:g} s and {len(histories)} histories each")
    caught = 0
    by_module: dict[str, list[bool]] = {}
    known = _tried_before(out)
    for tried, (mutant, outcome) in enumerate(_outcomes(chosen, seconds, seed, jobs, histories, kind, known), start=1):
        caught += bool(outcome["caught"])
        by_module.setdefault(mutant.module, []).append(bool(outcome["caught"]))
        if out is not None and _key(mutant) not in known:
            with out.open("a") as file:
                file.write(
                    json.dumps({"mutant": _key(mutant), "line": mutant.line, "rule": mutant.rule, **outcome}) + "\n"
                )
        if not outcome["caught"]:
            click.echo(f"survives  {mutant.name:24} {mutant.rule:9} line {mutant.line:4}  {mutant.text}")
        elif sys.stderr.isatty():
            click.echo(f"\r{tried}/{len(chosen)} tried, {caught} caught", nl=False, err=True)
    for module, outcomes in sorted(by_module.items()):
        survive = outcomes.count(False)
        click.echo(f"{module:32} {sum(outcomes):4} of {len(outcomes):4} caught, {survive} survive")
    made = f"of {len(every) + len(none)} that the rules make {len(none)} are known to be no mistakes"
    click.echo(f"{caught} of {len(chosen)} mutants caught; {made}.")


def _key(mutant: Mechanical) -> str:
    return f"{mutant.module}:{mutant.number}"


def _tried_before(out: Path | None) -> dict[str, dict[str, Any]]:
    """Mutant -> its outcome, of a score that was cut off."""
    if out is None or not out.exists():
        return {}
    return {outcome["mutant"]: outcome for outcome in map(json.loads, out.read_text().splitlines())}


def _outcomes(
    mutants: list[Mechanical],
    seconds: float,
    seed: int,
    jobs: int,
    histories: list[Path],
    kind: str,
    known: dict[str, dict[str, Any]],
) -> Iterator[tuple[Mechanical, dict[str, Any]]]:
    def attempt(mutant: Mechanical) -> tuple[Mechanical, dict[str, Any]]:
        if _key(mutant) in known:
            return mutant, known[_key(mutant)]
        return mutant, run_trial({"module": mutant.module, "number": mutant.number}, seconds, seed, histories, kind)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(attempt, mutants)


if __name__ == "__main__":
    command()
