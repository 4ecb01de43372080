"""Running configurations, and comparing what TLC found with what each of them expects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path

from refmq.verify.spec.actions import actions_of_next
from refmq.verify.spec.catalogue import Configuration, find_module, library
from refmq.verify.spec.plan import is_short, longest_first, recorded
from refmq.verify.spec.tlc import DEFAULT_HEAP, Found, Outcome, Progress, Tlc, run_tlc

COVERAGE_INTERVAL_MINUTES = 60  # only the final statistics matter


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one configuration did what it says."""

    configuration: Configuration
    outcome: Outcome
    ok: bool
    result: str
    """What TLC found, in the words of an expectation: `ok`, `violation X`, `deadlock`, `error`, `timeout`."""
    reason: str = ""
    """One sentence when it is not ok."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How TLC is run."""

    heap: str = DEFAULT_HEAP
    workers: int = 1
    timeout_s: int | None = None
    seed: int = 1


def tlc_arguments(configuration: Configuration, options: RunOptions) -> list[str]:
    """The TLC options that a configuration asks for."""
    arguments = ["-workers", str(options.workers), "-fp", "0"]
    if not configuration.deadlock:
        arguments.append("-deadlock")  # turns the deadlock check off
    if configuration.role == "SIM":
        arguments += ["-simulate", f"num={configuration.walks}", "-depth", str(configuration.depth)]
        arguments += ["-seed", str(options.seed), "-aril", "0"]
    else:
        arguments += ["-lncheck", "final"]  # temporal properties are checked once, when the graph is complete
    if configuration.covers:
        arguments += ["-coverage", str(COVERAGE_INTERVAL_MINUTES)]
    return arguments


def run_configuration(
    tlc: Tlc,
    configuration: Configuration,
    options: RunOptions,
    on_progress: Callable[[Progress], None] | None = None,
    short_lived: bool = False,
) -> Verdict:
    """Run one configuration to its end."""
    outcome = run_tlc(
        tlc,
        configuration.module,
        configuration.text,
        arguments=tlc_arguments(configuration, options),
        folders=library(configuration.folder),
        heap=options.heap,
        short_lived=short_lived,
        timeout_s=options.timeout_s or configuration.timeout_s,
        on_progress=on_progress,
    )
    return judge(configuration, outcome)


def judge(configuration: Configuration, outcome: Outcome) -> Verdict:
    """Compare an outcome with the expectation. An expected violation that does not occur is a failure."""
    result = describe(configuration, outcome)
    expected = str(configuration.expect)
    if outcome.found is Found.TIMEOUT:
        return Verdict(configuration, outcome, False, result, f"gave up after {outcome.seconds:.0f} s")
    if outcome.found is Found.ERROR:
        said = " ".join(" ".join(outcome.errors).split())
        return Verdict(configuration, outcome, False, result, f"TLC could not check it: {said[:500]}")
    if result != expected:
        return Verdict(configuration, outcome, False, result, f"expected {expected}, found {result}")
    missing = never_taken(configuration, outcome)
    if missing:
        return Verdict(configuration, outcome, False, "not covered", f"never taken: {', '.join(missing)}")
    return Verdict(configuration, outcome, True, result)


def describe(configuration: Configuration, outcome: Outcome) -> str:
    match outcome.found:
        case Found.INVARIANT:
            return f"violation {outcome.name}"
        case Found.ACTION_PROPERTY:
            return f"violation {action_property_name(configuration, outcome.name)}"
        case Found.TEMPORAL:
            names = configuration.cfg.properties
            return f"violation (liveness) {' or '.join(names)}"
    return str(outcome.found.value)


def action_property_name(configuration: Configuration, place: str) -> str:
    """TLC names an action property by its location; this is the name under which the configuration lists it."""
    properties = configuration.cfg.properties
    if len(properties) == 1:
        return properties[0]
    match = re.search(r"line (\d+).* of module (\w+)", place)
    if match is None:
        return place
    enclosing = definition_at(find_module(configuration.folder, match[2]), int(match[1]))
    if enclosing in properties:
        return enclosing
    # A refinement is listed under a name of the refining module, and violated in the abstract one.
    places = (
        configuration.folder / f"{configuration.protocol}.tla",
        configuration.folder / f"{configuration.protocol}Promises.tla",
        configuration.module,
    )
    texts = "\n".join(path.read_text() for path in places if path.is_file())
    for name in properties:
        if re.search(rf"^{name}\s*==\s*\w+!\w+", texts, flags=re.MULTILINE) and match[2].endswith("Abstract"):
            return name
    return enclosing or place


def definition_at(path: Path | None, line: int) -> str:
    """The name of the definition that a line of a module belongs to."""
    assert line > 0, "lines are counted from 1"
    if path is None or not path.is_file():
        return ""
    for text in reversed(path.read_text().splitlines()[:line]):
        match = re.match(r"(\w+)(\([^)]*\))?\s*==", text)
        if match is not None:
            return match[1]
    return ""


def never_taken(configuration: Configuration, outcome: Outcome) -> list[str]:
    """Actions of the protocol that the configuration promises to cover and does not."""
    if not configuration.covers:
        return []
    spec = configuration.folder / f"{configuration.protocol}.tla"
    wanted = [name for name in actions_of_next(spec.read_text()) if name not in configuration.covers_except]
    return [name for name in wanted if outcome.coverage.get(name, 0) == 0]


def run_all(
    tlc: Tlc,
    configurations: Sequence[Configuration],
    options: RunOptions,
    jobs: int,
    on_progress: Callable[[dict[str, Progress]], None] | None = None,
) -> Iterator[Verdict]:
    """Run the configurations, `jobs` at a time, and yield each verdict as it comes in."""
    running: dict[str, Progress] = {}
    known = recorded(configurations[0].folder.parent / "README.md") if configurations else {}

    def one(configuration: Configuration) -> Verdict:
        def note(progress: Progress) -> None:
            running[configuration.name] = progress

        running[configuration.name] = Progress()
        try:
            return run_configuration(tlc, configuration, options, note, is_short(configuration, known))
        finally:
            running.pop(configuration.name, None)

    with tlc.threads(jobs) as pool:
        waiting: set[Future[Verdict]] = {
            pool.submit(one, configuration) for configuration in longest_first(configurations, known)
        }
        while waiting:
            done, waiting = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
            if on_progress is not None:
                on_progress(dict(running))
