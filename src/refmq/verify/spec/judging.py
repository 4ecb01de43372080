"""What becomes of mutants: each is held against the configurations that say `mutants: yes`.

A mutant is killed by the first configuration that does not end as it expects; only survivors go on to the next one. The
quickest one is asked first, and soon the one that has killed most mutants for its time.
Verdicts are kept in a file, under a hash of everything that they depend on (the mutated module, the other modules, the
configuration, the way in which TLC is run), so that a run that was interrupted goes on where it stopped, and a change
of one configuration asks only for the verdicts of that one.
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
from dataclasses import dataclass, field
from pathlib import Path

from refmq.errors import CheckFound
from refmq.verify.spec.catalogue import Configuration, read_configuration
from refmq.verify.spec.check import RunOptions, judge, tlc_arguments
from refmq.verify.spec.mutants import Mutant
from refmq.verify.spec.plan import recorded
from refmq.verify.spec.tlc import Found, Tlc, run_tlc

MUTANT_TIMEOUT_S = 300  # a mutant that takes longer lets the model grow without end (or the machine is very busy)
MUTANT_HEAP = "1g"
JVM_START_S = 1.0  # what a judge costs that has nothing to do
UNTIMED_S = 5.0  # how long a judge is taken to be of which the table of results knows nothing


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a mutant: the configuration and the finding that killed it, or nothing."""

    mutant: Mutant | None
    killed_by: str = ""
    finding: str = ""
    broken: bool = False
    """It does not parse: a fault of the mutation tool, not a finding."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one configuration found in one mutant; an empty finding: it ended as it expects, or not in time."""

    finding: str = ""
    broken: bool = False


class Judgements:
    """The verdicts of earlier runs: lines of JSON, of which the last one for a key counts. Without a file, none."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.lock = threading.Lock()
        self.known: dict[str, Judgement] = {}
        if path is not None and path.is_file():
            for line in path.read_text().splitlines():
                try:
                    entry = json.loads(line)
                    self.known[str(entry["key"])] = Judgement(str(entry["finding"]), bool(entry["broken"]))
                except (ValueError, KeyError, TypeError):
                    continue  # the last line of a run that was killed; its verdict is found again

    def get(self, key: str) -> Judgement | None:
        with self.lock:
            return self.known.get(key)

    def put(self, key: str, judgement: Judgement, about: str) -> None:
        with self.lock:
            self.known[key] = judgement
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                entry = {"key": key, "finding": judgement.finding, "broken": judgement.broken, "about": about}
                with self.path.open("a") as file:
                    file.write(json.dumps(entry) + "\n")


@dataclass(frozen=True, slots=True)
class Court:
    """Everything that judging one protocol takes."""

    tlc: Tlc
    spec: Path
    judges: Sequence[Configuration]
    seconds: Mapping[str, float]
    """How long each judge takes, by its name."""
    options: RunOptions
    judgements: Judgements
    asked: Counter[str] = field(default_factory=Counter)
    killed: Counter[str] = field(default_factory=Counter)

    def text_of(self, mutant: Mutant | None) -> str:
        text = self.spec.read_text()
        return text if mutant is None else mutant.apply(text)

    def key(self, mutant: Mutant | None, configuration: Configuration) -> str:
        """A hash of all that the verdict depends on."""
        digest = hashlib.sha256(self.text_of(mutant).encode())
        others = sorted(path for path in self.spec.parent.glob(f"*{self.spec.name}") if path != self.spec)
        others += sorted(self.spec.parent.glob(f"{self.spec.stem}*.tla"))
        others += [configuration.module] if configuration.module not in others else []
        for path in (configuration.path, *(path for path in others if path != self.spec)):
            digest.update(b"\0" + path.name.encode() + b"\0" + path.read_bytes())
        digest.update(repr((tlc_arguments(configuration, self.options), self.options.timeout_s)).encode())
        return digest.hexdigest()

    def judge_one(self, mutant: Mutant | None, configuration: Configuration) -> Judgement:
        """The verdict of one configuration, from an earlier run or by TLC."""
        key = self.key(mutant, configuration)
        judgement = self.judgements.get(key)
        if judgement is None:
            judgement = self.run(mutant, configuration)
            self.judgements.put(key, judgement, f"{configuration.name}: {mutant or 'the original'}")
        return judgement

    def run(self, mutant: Mutant | None, configuration: Configuration) -> Judgement:
        with tempfile.TemporaryDirectory(prefix="refmq-mutant-") as folder_name:
            folder = Path(folder_name)
            for path in (*self.spec.parent.glob("*.tla"), configuration.path):
                shutil.copy(path, folder)
            (folder / self.spec.name).write_text(self.text_of(mutant))
            copy = read_configuration(folder / configuration.path.name)
            outcome = run_tlc(
                self.tlc,
                copy.module,
                copy.path,
                arguments=tlc_arguments(copy, self.options),
                heap=MUTANT_HEAP,
                short_lived=True,
                timeout_s=self.options.timeout_s or MUTANT_TIMEOUT_S,
            )
            if outcome.found is Found.ERROR and no_finding(outcome.errors):
                return Judgement(" ".join(outcome.errors)[:200], broken=True)
            verdict = judge(copy, outcome)
        if verdict.ok or (outcome.found is Found.TIMEOUT and mutant is not None):
            return Judgement()
        return Judgement(verdict.reason[:200])

    def promise(self, configuration: Configuration) -> float:
        """How many mutants a judge kills in a second, as far as it has been asked."""
        name = configuration.name
        return (self.killed[name] + 1) / (self.asked[name] + 2) / (self.seconds[name] + JVM_START_S)

    def fate_of(self, mutant: Mutant) -> Fate:
        """Hold a mutant against one judge after the other until one of them does not end as it expects.

        A judge that is known to have killed it is enough.
        """
        for configuration in self.judges:
            known = self.judgements.get(self.key(mutant, configuration))
            if known is not None and known.finding:
                return Fate(mutant, configuration.name, known.finding, known.broken)
        for configuration in sorted(self.judges, key=self.promise, reverse=True):
            if mutant.kind == "fair" and not assumes_fairness(configuration):
                continue  # it does not read the fairness conditions, so nothing can have changed for it
            judgement = self.judge_one(mutant, configuration)
            self.asked[configuration.name] += 1
            if judgement.finding:
                self.killed[configuration.name] += 1
                return Fate(mutant, configuration.name, judgement.finding, judgement.broken)
        return Fate(mutant)


def assumes_fairness(configuration: Configuration) -> bool:
    return re.search(r"^SPECIFICATION\s+\w*Fair\w*", configuration.path.read_text(), flags=re.MULTILINE) is not None


def no_finding(errors: Sequence[str]) -> bool:
    """Whether TLC failed without having evaluated anything: the text does not parse, or Java itself gave up.

    An error while a mutant is evaluated (a value outside of a function's domain) is a finding, and kills it.
    """
    unparsable = re.compile(r"Parsing or semantic analysis failed|\*\*\* Errors|Lexical error|OutOfMemory")
    return any(map(unparsable.search, errors)) or all(error.startswith("TLC ended with code") for error in errors)


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
    """The fate of every mutant, in the order given. The original has to pass every judge first."""
    times = recorded(spec.parent / "README.md")

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
        originals = pool.map(lambda configuration: court.judge_one(None, configuration), court.judges)
        for configuration, original in zip(court.judges, originals, strict=True):
            if original.finding:
                raise CheckFound(f"without any mutation {configuration.name} fails: {original.finding}")
        return list(pool.map(one, mutants))
