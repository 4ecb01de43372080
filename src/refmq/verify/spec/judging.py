"""What becomes of mutants: each faces the configurations with `mutants = true`, its judges.

The first judge that does not end as it expects kills the mutant; only survivors go on to the next judge. At first the
quickest judge goes first, and soon the one that has killed most mutants for its time. A judge that does not finish in
time has said nothing. If no other judge kills the mutant, it is asked again with more time; if it still says nothing,
the mutant is undecided, which is neither killed nor survived.

Verdicts are kept in a file, under a hash of everything they depend on (the mutated module, the other modules, the
configuration, the way TLC is run). So an interrupted run resumes where it stopped, and changing one configuration only
asks for that one's verdicts again.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from refmq.errors import CheckFound
from refmq.verify.spec.catalogue import Configuration, library, modules_read
from refmq.verify.spec.check import RunOptions, judge, tlc_arguments
from refmq.verify.spec.mutants import Mutant
from refmq.verify.spec.plan import recorded
from refmq.verify.spec.tlc import Found, Tlc, run_tlc

FIRST_LIMIT_S = 90  # many times what a judge takes for the original
LAST_LIMIT_S = 900  # a mutant that takes longer makes the model grow without end (or the machine is very busy)
MUTANT_HEAP = "1g"
RUN_START_S = 0.2  # what a judge with nothing to do costs
UNPARSABLE = re.compile(r"Parsing or semantic analysis failed|\*\*\* Errors|Lexical error")
UNTIMED_S = 5.0  # assumed for a judge that is not in the table of results


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a mutant: the configuration and the finding that killed it, if any."""

    mutant: Mutant | None
    killed_by: str = ""
    finding: str = ""
    broken: bool = False
    """It does not parse: a bug of the mutation tool, not a finding."""
    undecided_by: str = ""
    """A configuration that did not finish in time, when no other one killed the mutant."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one configuration found in one mutant; no finding means that it ended as it expects."""

    finding: str = ""
    broken: bool = False
    late_after_s: int = 0
    """It did not finish in this many seconds (or ran out of memory), so there is no finding yet; 0: it did."""


class Judgements:
    """The verdicts of earlier runs: lines of JSON, the last of which counts for each key. Without a file, none."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.known: dict[str, Judgement] = {}
        if path is not None and path.is_file():
            for line in path.read_text().splitlines():
                try:
                    entry = json.loads(line)
                    late_after_s = int(entry["late_after_s"])
                    self.known[str(entry["key"])] = Judgement(
                        str(entry["finding"]), bool(entry["broken"]), late_after_s
                    )
                except (ValueError, KeyError, TypeError):
                    continue  # the last line of a run that was killed; its verdict is found anew

    def get(self, key: str) -> Judgement | None:
        with self.lock:
            return self.known.get(key)

    def put(self, key: str, judgement: Judgement, about: str) -> None:
        with self.lock:
            self.known[key] = judgement
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                entry = {"key": key, **asdict(judgement), "about": about}
                with self.path.open("a") as file:
                    file.write(json.dumps(entry) + "\n")


@dataclass(frozen=True, slots=True)
class Court:
    """Everything needed to judge one protocol."""

    tlc: Tlc
    spec: Path
    judges: Sequence[Configuration]
    seconds: Mapping[str, float]
    """How long each judge takes, by name."""
    options: RunOptions
    judgements: Judgements
    asked: Counter[str] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)

    def text_of(self, mutant: Mutant | None) -> str:
        text = self.spec.read_text()
        return text if mutant is None else mutant.apply(text)

    def key(self, mutant: Mutant | None, configuration: Configuration) -> str:
        """A hash of everything the verdict depends on."""
        digest = hashlib.sha256(self.text_of(mutant).encode())
        digest.update(b"\0" + configuration.cfg.render().encode())
        for path in sorted(modules_read(configuration.folder, configuration.module) - {self.spec}):
            digest.update(b"\0" + path.name.encode() + b"\0" + path.read_bytes())
        wanted = (str(configuration.expect), configuration.covers, sorted(configuration.covers_except))
        digest.update(repr((wanted, tlc_arguments(configuration, self.options))).encode())
        return digest.hexdigest()

    def judge_one(self, mutant: Mutant | None, configuration: Configuration, limit_s: int) -> Judgement:
        """The verdict of one configuration, from an earlier run (if it had as much time) or from TLC."""
        key = self.key(mutant, configuration)
        judgement = self.judgements.get(key)
        if judgement is None or 0 < judgement.late_after_s < limit_s:
            judgement = self.run(mutant, configuration, limit_s)
            self.judgements.put(key, judgement, f"{configuration.name}: {mutant or 'the original'}")
        return judgement

    def run(self, mutant: Mutant | None, configuration: Configuration, limit_s: int) -> Judgement:
        with tempfile.TemporaryDirectory(prefix="refmq-mutant-") as folder_name:
            folder = Path(folder_name)
            for place in library(configuration.folder):
                for path in place.glob("*.tla"):
                    shutil.copy(path, folder)
            assert (folder / self.spec.name).is_file(), "a judge reads the module that is mutated"
            (folder / self.spec.name).write_text(self.text_of(mutant))
            copy = replace(configuration, folder=folder, module=folder / configuration.module.name)
            outcome = run_tlc(
                self.tlc,
                copy.module,
                copy.text,
                arguments=tlc_arguments(copy, self.options),
                heap=MUTANT_HEAP,
                short_lived=True,
                timeout_s=limit_s,
            )
            if outcome.found is Found.TIMEOUT or (outcome.found is Found.ERROR and gave_up(outcome.errors)):
                return Judgement(late_after_s=limit_s)
            if outcome.found is Found.ERROR and any(map(UNPARSABLE.search, outcome.errors)):
                return Judgement(" ".join(outcome.errors)[:200], broken=True)
            verdict = judge(copy, outcome)
        return Judgement() if verdict.ok else Judgement(verdict.reason[:200])

    def promise(self, configuration: Configuration) -> float:
        """How many mutants a judge kills per second, judging by those it has seen."""
        name = configuration.name
        return (self.killed[name] + 1) / (self.asked[name] + 2) / (self.seconds[name] + RUN_START_S)

    def fate_of(self, mutant: Mutant) -> Fate:
        """Try one judge after the other until one does not end as it expects.

        A judge known to have killed the mutant is enough.
        """
        for configuration in self.judges:
            known = self.judgements.get(self.key(mutant, configuration))
            if known is not None and known.finding:
                return Fate(mutant, configuration.name, known.finding, known.broken)
        fair = [judge for judge in self.judges if assumes_fairness(judge)]
        # Without fairness conditions a judge never reads what a mutant of that kind changed.
        waiting = fair if mutant.kind == "fair" else self.judges
        for limit_s in self.limits:
            late = []
            for configuration in sorted(waiting, key=self.promise, reverse=True):
                judgement = self.judge_one(mutant, configuration, limit_s)
                self.asked[configuration.name] += 1
                if judgement.finding:
                    self.killed[configuration.name] += 1
                    return Fate(mutant, configuration.name, judgement.finding, judgement.broken)
                if judgement.late_after_s:
                    late.append(configuration)
            waiting = late
        return Fate(mutant, undecided_by=waiting[0].name if waiting else "")

    @property
    def limits(self) -> Sequence[int]:
        """How long a judge may take, at first and when asked again."""
        return (self.options.timeout_s,) if self.options.timeout_s else (FIRST_LIMIT_S, LAST_LIMIT_S)


def assumes_fairness(configuration: Configuration) -> bool:
    return "Fair" in configuration.cfg.specification


def gave_up(errors: Sequence[str]) -> bool:
    """Whether Java itself failed: out of memory, or killed. Then TLC has found nothing.

    An error in evaluating a mutant (a value outside a function's domain) is a finding, and kills it.
    """
    return any("OutOfMemory" in error for error in errors) or all(
        error.startswith("TLC ended with code") for error in errors
    )


def judge_mutants(
    tlc: Tlc,
    spec: Path,
    mutants: Sequence[Mutant],
    configurations: Sequence[Configuration],
    options: RunOptions,
    jobs: int,
    on_fate: Callable[[Fate], None] | None = None,
    cache: Path | None = None,
) -> list[Fate]:
    """The fate of every mutant, in order. The original must satisfy every judge first."""
    assert configurations, "somebody has to judge"
    times = recorded(configurations[0].folder.parent / "README.md")

    def seconds(configuration: Configuration) -> float:
        record = times.get(configuration.name)
        return record.seconds if record is not None else UNTIMED_S

    durations = {configuration.name: seconds(configuration) for configuration in configurations}
    court = Court(tlc, spec, sorted(configurations, key=seconds), durations, options, Judgements(cache))

    def one(mutant: Mutant) -> Fate:
        fate = court.fate_of(mutant)
        if on_fate is not None:
            on_fate(fate)
        return fate

    with tlc.threads(jobs) as pool:
        originals = pool.map(lambda configuration: court.judge_one(None, configuration, LAST_LIMIT_S), court.judges)
        for configuration, original in zip(court.judges, originals, strict=True):
            if original.late_after_s:
                raise CheckFound(f"without any mutation {configuration.name} takes more than {LAST_LIMIT_S} s")
            if original.finding:
                raise CheckFound(f"without any mutation {configuration.name} fails: {original.finding}")
        return list(pool.map(one, mutants))
