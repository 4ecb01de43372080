"""``refmq spec``: list, show, check, simulate and mutate the specifications, and check traces against them."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

import click

from refmq.cli.output import json_option, print_json, print_table
from refmq.errors import CheckFound, UsageError
from refmq.verify.spec.actions import actions_of_next
from refmq.verify.spec.catalogue import (
    Configuration,
    Profile,
    extensions,
    find_configurations,
    find_module,
    find_protocols,
    find_spec_dir,
    modules_read,
)
from refmq.verify.spec.check import RunOptions, Verdict, run_all
from refmq.verify.spec.counterexample import history, render, steps_of
from refmq.verify.spec.histories import as_saved_history
from refmq.verify.spec.judging import Fate, judge_mutants
from refmq.verify.spec.mutants import KINDS, Reasons, mutants_of, read_reasons, survivors_file
from refmq.verify.spec.plan import recorded
from refmq.verify.spec.score import Score
from refmq.verify.spec.selection import choose, choose_one
from refmq.verify.spec.table import write_score
from refmq.verify.spec.table import write_table as write_results
from refmq.verify.spec.tlc import DEFAULT_HEAP, Progress, find_tlc
from refmq.verify.spec.traces import validate_trace

spec_dir_option = click.option(
    "--spec-dir",
    type=click.Path(path_type=Path),
    help="Folder of the specifications (default: ./spec, or that of the source checkout).",
)
jar_option = click.option(
    "--jar", type=click.Path(path_type=Path), help="tla2tools.jar to use (default: see the docs)."
)
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=min(2, os.cpu_count() or 1),
    show_default=True,
    help="Runs of TLC at the same time.",
)
heap_option = click.option("--heap", default=DEFAULT_HEAP, show_default=True, help="Memory of each run.")
timeout_option = click.option(
    "--timeout", "timeout_s", type=click.IntRange(1), help="Give up on a run after this many seconds."
)


@click.group(name="spec", no_args_is_help=True)
def command() -> None:
    """The TLA+ specifications: check them, walk them at random, check a trace against them, mutate them."""


@command.command("list")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@spec_dir_option
@json_option
def list_(names: tuple[str, ...], spec_dir: Path | None, as_json: bool) -> None:
    """List the configurations, or those of NAME: a protocol, a folder below spec/ or a configuration."""
    folder = find_spec_dir(spec_dir)
    found = choose(find_configurations(folder), names, "all")
    if as_json:
        print_json(
            {
                "protocols": {
                    name: actions_of_next((place / f"{name}.tla").read_text())
                    for name, place in find_protocols(folder).items()
                },
                "configurations": [
                    {
                        "name": configuration.name,
                        "protocol": configuration.protocol,
                        "expect": str(configuration.expect),
                        "profiles": sorted(configuration.profiles),
                        "mutants": configuration.mutants,
                        "about": " ".join(configuration.about),
                    }
                    for configuration in found
                ],
            }
        )
        return
    print_table(
        ("configuration", "profile", "expects", "about"),
        [
            (
                configuration.name,
                "+".join(sorted(configuration.profiles)),
                configuration.expect,
                configuration.about[0],
            )
            for configuration in found
        ],
    )


@command.command()
@click.argument("name")
@spec_dir_option
@json_option
def show(name: str, spec_dir: Path | None, as_json: bool) -> None:
    """Say what configuration NAME is about, what it expects, and what its last run found."""
    folder = find_spec_dir(spec_dir)
    configuration = choose_one(find_configurations(folder), name)
    record = recorded(folder / "README.md").get(configuration.name)
    facts: dict[str, object] = {
        "configuration": configuration.name,
        "about": " ".join(configuration.about),
        "expects": str(configuration.expect),
        "repair": configuration.repair,
        "profile": ", ".join(sorted(configuration.profiles)),
        "judges mutants": "yes" if configuration.mutants else "no",
        "module": str(configuration.module.relative_to(folder)),
        "last result": f"{record.distinct:,} states, depth {record.depth}, {record.seconds} s" if record else "none",
    }
    if as_json:
        print_json(facts)
        return
    for key, value in facts.items():
        if value:
            click.echo(f"{key + ':':16}{value}")


@command.command()
@click.argument("name")
@click.option("--into", type=click.Path(path_type=Path), help="Write the file and its modules to this folder instead.")
@spec_dir_option
def cfg(name: str, into: Path | None, spec_dir: Path | None) -> None:
    """Print the configuration file that TLC gets for NAME."""
    configuration = choose_one(find_configurations(find_spec_dir(spec_dir)), name)
    if into is None:
        click.echo(configuration.text, nl=False)
        return
    into.mkdir(parents=True, exist_ok=True)
    for path in modules_read(configuration.folder, configuration.module):
        shutil.copy(path, into)
    (into / f"{configuration.module.stem}.cfg").write_text(configuration.text)
    click.echo(f"java -cp tla2tools.jar tlc2.TLC -deadlock {into / configuration.module.name}")


@command.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--profile", type=click.Choice([*Profile, "all"]), help="Which configurations (default: quick).")
@click.option("--workers", type=click.IntRange(1, 64), default=1, show_default=True, help="Threads of each run.")
@click.option("--write-table", is_flag=True, help="Write the table of results into the README of the folder.")
@click.option("--counterexamples", type=click.Path(path_type=Path), help="Folder for counterexamples as JSON files.")
@click.option("--show", is_flag=True, help="Print counterexamples of expected violations too.")
@spec_dir_option
@jar_option
@jobs_option
@heap_option
@timeout_option
@json_option
def check(
    names: tuple[str, ...],
    profile: str | None,
    workers: int,
    write_table: bool,
    counterexamples: Path | None,
    show: bool,
    spec_dir: Path | None,
    jar: Path | None,
    jobs: int,
    heap: str,
    timeout_s: int | None,
    as_json: bool,
) -> None:
    """Check configurations exhaustively.

    NAME is a protocol, a folder below spec/ or a configuration; without one, all of the profile run.
    """
    folder = find_spec_dir(spec_dir)
    chosen = choose(find_configurations(folder, "MC"), names, profile)
    options = RunOptions(heap=heap, workers=workers, timeout_s=timeout_s)
    verdicts = run(chosen, options, jobs, jar, as_json)
    if write_table:
        write_results(folder / "README.md", verdicts)
    finish(verdicts, counterexamples, show, as_json)


@command.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--seed", type=int, default=1, show_default=True, help="Seed of the random walks.")
@click.option("--counterexamples", type=click.Path(path_type=Path), help="Folder for counterexamples as JSON files.")
@spec_dir_option
@jar_option
@jobs_option
@heap_option
@timeout_option
@json_option
def simulate(
    names: tuple[str, ...],
    seed: int,
    counterexamples: Path | None,
    spec_dir: Path | None,
    jar: Path | None,
    jobs: int,
    heap: str,
    timeout_s: int | None,
    as_json: bool,
) -> None:
    """Walk the specifications at random. NAME is a protocol or a configuration of a SIM module."""
    folder = find_spec_dir(spec_dir)
    chosen = choose(find_configurations(folder, "SIM"), names, "all")
    options = RunOptions(heap=heap, timeout_s=timeout_s, seed=seed)
    finish(run(chosen, options, jobs, jar, as_json), counterexamples, False, as_json)


@command.command()
@click.argument("protocol")
@click.argument("trace_file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--config", default="", help="Configuration of the Trace module (default: trace).")
@spec_dir_option
@jar_option
@heap_option
@timeout_option
@json_option
def trace(
    protocol: str,
    trace_file: Path,
    config: str,
    spec_dir: Path | None,
    jar: Path | None,
    heap: str,
    timeout_s: int | None,
    as_json: bool,
) -> None:
    """Check that the events in FILE are a behaviour of PROTOCOL, from the first to the last."""
    folder = find_spec_dir(spec_dir)
    options = RunOptions(heap=heap, timeout_s=timeout_s)
    answer = validate_trace(find_tlc(jar), folder, protocol, trace_file, options, config)
    if as_json:
        print_json(answer.to_json())
    elif answer.accepted:
        click.echo(f"{answer.events} events of {trace_file} are a behaviour of {protocol} ({answer.states} states)")
    elif answer.explanation:
        click.echo(answer.explanation)
    if not answer.accepted:
        raise CheckFound(answer.reason)


@command.command()
@click.argument("protocol")
@click.option("--kind", "kinds", multiple=True, type=click.Choice(KINDS), help="Only these mutants (default: all).")
@click.option("--every", type=click.IntRange(1), default=1, help="Only every N-th mutant, always the same ones.")
@click.option("--only", default="", help="Only mutants of this definition.")
@click.option("--dry-run", is_flag=True, help="List the mutants without running them.")
@click.option("--no-cache", is_flag=True, help="Neither use nor keep verdicts in build/mutants/.")
@click.option("--write-table", is_flag=True, help="Write the score into the README of the folder.")
@spec_dir_option
@jar_option
@jobs_option
@timeout_option
@json_option
def mutate(
    protocol: str,
    kinds: tuple[str, ...],
    every: int,
    only: str,
    dry_run: bool,
    no_cache: bool,
    write_table: bool,
    spec_dir: Path | None,
    jar: Path | None,
    jobs: int,
    timeout_s: int | None,
    as_json: bool,
) -> None:
    """Change one place of PROTOCOL at a time, and see whether TLC notices.

    PROTOCOL may also be a module that adds actions to a protocol (MCX...); its own configurations judge it.
    """
    folder = find_spec_dir(spec_dir)
    extends = protocol in extensions(folder)
    place = {**find_protocols(folder), **extensions(folder)}.get(protocol)
    spec = find_module(place, protocol) if place is not None else None
    if place is None or spec is None:
        raise UsageError(f"there is no protocol {protocol} in {folder}")
    complete = every == 1 and not only and not kinds
    if write_table and not complete:
        raise UsageError("--write-table needs all mutants: drop --every, --only and --kind")
    mutants = [mutant for mutant in mutants_of(spec.read_text(), kinds or KINDS) if only in ("", mutant.definition)]
    mutants = mutants[::every]
    if dry_run:
        listed = [str(mutant) for mutant in mutants]
        print_json(listed) if as_json else click.echo("\n".join(listed))
        return
    judges = [
        one
        for one in find_configurations(folder, "MC")
        if (one.module == spec if extends else one.protocol == protocol and one.mutants)
    ]
    if not judges:
        raise UsageError(f"no configuration of {protocol} says `mutants = true`")
    reasons = read_reasons(survivors_file(place, protocol))
    counter = MutantCounter(len(mutants), quiet=as_json)
    options = RunOptions(timeout_s=timeout_s)
    cache = None if no_cache else folder.parent / "build" / "mutants" / f"{protocol}.jsonl"
    fates = judge_mutants(find_tlc(jar), spec, mutants, judges, options, jobs, counter.count, cache)
    counter.clear()
    score = Score(fates, reasons)
    if write_table:
        write_score(folder / "README.md", protocol, score.cells())
    report_mutants(protocol, score, reasons, complete, as_json)


class MutantCounter:
    """The progress line of a mutation run."""

    def __init__(self, total: int, quiet: bool) -> None:
        self.total, self.done, self.survived = total, 0, 0
        self.shown = not quiet and sys.stderr.isatty()

    def count(self, fate: Fate) -> None:
        self.done += 1
        self.survived += not fate.killed_by
        if self.shown:
            click.echo(f"\r\x1b[K{self.done}/{self.total} mutants, {self.survived} survived", nl=False, err=True)

    def clear(self) -> None:
        if self.shown:
            click.echo("\r\x1b[K", nl=False, err=True)


def report_mutants(protocol: str, score: Score, reasons: Reasons, complete: bool, as_json: bool) -> None:
    """Print the score and the survivors, and raise if something is wrong with them."""
    survivors, fates = score.survivors, score.fates
    if as_json:
        print_json(
            {
                "protocol": protocol,
                "mutants": len(fates),
                "killed": score.killed,
                "score": round(score.ratio, 4),
                "survivors": [{"mutant": str(mutant), "reason": reasons.get(mutant.key)} for mutant in survivors],
                "undecided": [{"mutant": str(fate.mutant), "by": fate.undecided_by} for fate in score.undecided],
                "killers": {str(fate.mutant): f"{fate.killed_by}: {fate.finding}" for fate in fates if fate.killed_by},
            }
        )
    else:
        for mutant in survivors:
            click.echo(f"survived  {mutant}\n          {reasons.get(mutant.key, 'NO REASON GIVEN')}")
        for fate in score.undecided:
            click.echo(f"undecided {fate.mutant}\n          {fate.undecided_by} did not finish in time")
        click.echo(
            f"{protocol}: {score.killed} of {len(fates)} mutants killed ({100 * score.ratio:.1f} %), "
            f"{len(survivors)} survived, {len(score.undecided)} undecided"
        )
    complaint = score.complaint(protocol, complete)
    if complaint:
        raise CheckFound(complaint)


def run(chosen: list[Configuration], options: RunOptions, jobs: int, jar: Path | None, as_json: bool) -> list[Verdict]:
    """Run the configurations, with a progress line on a terminal."""
    line = ProgressLine(shown=not as_json and sys.stderr.isatty())
    verdicts = []
    for verdict in run_all(find_tlc(jar), chosen, options, jobs, line.show):
        line.clear()
        verdicts.append(verdict)
        if not as_json and not verdict.ok:
            click.echo(f"{verdict.configuration.name}: {verdict.reason}", err=True)
    line.clear()
    order = [one.name for one in chosen]
    return sorted(verdicts, key=lambda verdict: order.index(verdict.configuration.name))


class ProgressLine:
    """One line on stderr that says how far the running configurations have come."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self.before: dict[str, tuple[float, int]] = {}

    def show(self, running: dict[str, Progress]) -> None:
        if not self.shown:
            return
        now = time.monotonic()
        parts = []
        for name, progress in running.items():
            since, generated = self.before.setdefault(name, (now, progress.generated))
            rate = (progress.generated - generated) / (now - since) if now > since else 0.0
            parts.append(
                f"{name}: {progress.distinct:,} states, depth {progress.depth}, {progress.left:,} left, {rate:,.0f}/s"
            )
        click.echo("\r\x1b[K" + "   ".join(parts)[:160], nl=False, err=True)

    def clear(self) -> None:
        if self.shown:
            click.echo("\r\x1b[K", nl=False, err=True)


def finish(verdicts: list[Verdict], counterexamples: Path | None, show: bool, as_json: bool) -> None:
    """Print and save what was found; raise if anything was not as expected."""
    saved = {}
    for verdict in verdicts:
        if verdict.outcome.states:
            steps = steps_of(verdict.outcome, verdict.configuration.protocol)
            if counterexamples is not None:
                saved[verdict.configuration.name] = str(save_counterexample(counterexamples, verdict))
            if not as_json and (show or not verdict.ok):
                click.echo(f"{verdict.configuration.name}: {verdict.result}")
                click.echo(render(steps, verdict.outcome.loop_to) + "\n")
    if as_json:
        print_json([verdict_json(verdict, saved.get(verdict.configuration.name)) for verdict in verdicts])
    else:
        print_table(
            ("configuration", "expected", "found", "distinct states", "depth", "seconds", "processor", ""),
            [
                (
                    verdict.configuration.name,
                    verdict.configuration.expect,
                    verdict.result,
                    f"{verdict.outcome.progress.distinct or verdict.outcome.progress.generated:,}",
                    verdict.outcome.progress.depth,
                    f"{verdict.outcome.seconds:.1f}",
                    f"{verdict.outcome.cpu_seconds:.1f}",
                    "" if verdict.ok else "FAILED",
                )
                for verdict in verdicts
            ],
        )
    failed = [verdict for verdict in verdicts if not verdict.ok]
    if failed:
        first = failed[0]
        raise CheckFound(
            f"{len(failed)} of {len(verdicts)} configurations failed, the first is "
            f"{first.configuration.name}: {first.reason}"
        )


def save_counterexample(folder: Path, verdict: Verdict) -> Path:
    """Save a counterexample as JSON: its steps, and the history that `python -m conformance replay` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    steps = steps_of(verdict.outcome, verdict.configuration.protocol)
    path = folder / f"{verdict.configuration.name.replace('/', '.')}.json"
    data = {
        "protocol": verdict.configuration.protocol,
        "configuration": verdict.configuration.name,
        "found": verdict.result,
        **as_saved_history(verdict.configuration, verdict.outcome.states),
        **history(steps, verdict.outcome.loop_to),
    }
    path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    return path


def verdict_json(verdict: Verdict, saved: str | None) -> dict[str, object]:
    outcome = verdict.outcome
    return {
        "configuration": verdict.configuration.name,
        "expected": str(verdict.configuration.expect),
        "found": verdict.result,
        "ok": verdict.ok,
        "reason": verdict.reason,
        "distinct_states": outcome.progress.distinct,
        "generated_states": outcome.progress.generated,
        "depth": outcome.progress.depth,
        "seconds": round(outcome.seconds, 1),
        "cpu_seconds": round(outcome.cpu_seconds, 1),
        "coverage": outcome.coverage,
        "counterexample": history(steps_of(outcome, verdict.configuration.protocol), outcome.loop_to)
        if outcome.states
        else None,
        "saved": saved,
    }
