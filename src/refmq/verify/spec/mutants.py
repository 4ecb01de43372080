r"""Mutants: the specification with one guard missing or one comparison turned, and whether anything notices.

Three kinds, made from every definition that `Next` reaches:

| kind   | what is changed                                                     | example                          |
|--------|---------------------------------------------------------------------|----------------------------------|
| drop   | one conjunct that does not speak of the next state becomes TRUE     | `/\ flushed >= end` is gone      |
| swap   | one comparison is turned into its neighbour                         | `<` to `<=`, `=` to `#`          |
| effect | one `x' = e` becomes `x' = x`                                       | a forgotten assignment           |

A mutant is killed when a configuration marked `mutants: yes` no longer ends as it expects. Survivors are explained in
spec/mutants/X.toml, one entry each; a survivor without a reason, and a reason without its survivor, are failures.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from refmq.errors import CheckFound, UsageError
from refmq.verify.spec.actions import is_group
from refmq.verify.spec.catalogue import Configuration, read_configuration
from refmq.verify.spec.check import RunOptions, judge, tlc_arguments
from refmq.verify.spec.syntax import (
    Definition,
    Node,
    definitions_of,
    reached_from,
    read_expression,
    speaks_of_next_state,
)
from refmq.verify.spec.tlc import Found, Tlc, run_tlc

MUTANT_TIMEOUT_S = 300  # a mutant that takes longer lets the model grow without end (or the machine is very busy)
MUTANT_HEAP = "1g"
KINDS = ("drop", "swap", "effect")
SWAPS = {
    "=": "#",
    "#": "=",
    "/=": "=",
    "<": "<=",
    "<=": "<",
    "=<": "<",
    "\\leq": "<",
    ">": ">=",
    ">=": ">",
    "\\geq": ">",
    "\\in": "\\notin",
    "\\notin": "\\in",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of the specification's text: `text[start:end]` becomes `replacement`."""

    definition: str
    kind: str
    line: int
    original: str
    """What is changed, in one line with single blanks: how an explanation names it."""
    occurrence: int
    """1 for the first such text in its definition, 2 for the next one."""
    start: int
    end: int
    replacement: str

    @property
    def key(self) -> tuple[str, str, str, int]:
        return (self.definition, self.kind, self.original, self.occurrence)

    def __str__(self) -> str:
        again = f" ({self.occurrence})" if self.occurrence > 1 else ""
        return f"{self.definition}: {self.kind} `{self.original}`{again}, line {self.line}"

    def apply(self, text: str) -> str:
        """The mutated text. Columns of what follows are kept where there is room: junction lists depend on them."""
        old = text[self.start : self.end]
        padding = " " * max(0, len(old.rpartition("\n")[2]) - len(self.replacement)) if "\n" not in old else ""
        return text[: self.start] + self.replacement + padding + "\n" * old.count("\n") + text[self.end :]


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a mutant: the configuration and the finding that killed it, or nothing."""

    mutant: Mutant | None
    killed_by: str = ""
    finding: str = ""
    broken: bool = False
    """It does not parse: a fault of this tool, not a finding."""


def mutants_of(text: str, kinds: Sequence[str] = KINDS) -> list[Mutant]:
    """Every mutant of a specification, in the order of its lines."""
    definitions = definitions_of(text)
    seen: dict[tuple[str, str, str], int] = {}
    found = []
    for name in reached_from("Next", definitions):
        definition = definitions[name]
        if name == "Next" or is_group(definition, definitions):
            continue
        try:
            root = read_expression(definition)
        except ValueError as error:
            raise UsageError(f"the mutation tool cannot read {name}: {error}") from error
        for kind, first, last, replacement in changes(root, definition, definitions):
            if kind not in kinds:
                continue
            start, end = definition.tokens[first].start, definition.tokens[last].end
            original = " ".join(text[start:end].split())
            if kind == "swap":
                original = original_of_swap(text, definition, root, first)
            seen[name, kind, original] = seen.get((name, kind, original), 0) + 1
            line = definition.tokens[first].line + 1
            found.append(
                Mutant(name, kind, line, original, seen[name, kind, original], start, end, replacement),
            )
    return sorted(found, key=lambda mutant: (mutant.line, mutant.start, mutant.kind))


def original_of_swap(text: str, definition: Definition, root: Node, operator: int) -> str:
    """The whole comparison of which the operator is a part."""
    for node in nodes(root):
        if node.kind == "compare" and node.operator == operator:
            return " ".join(text[definition.tokens[node.first].start : definition.tokens[node.last].end].split())
    raise AssertionError("a swap without its comparison")


def nodes(root: Node) -> Iterator[Node]:
    yield root
    for child in root.children:
        yield from nodes(child)


def changes(
    root: Node, definition: Definition, definitions: dict[str, Definition]
) -> Iterator[tuple[str, int, int, str]]:
    """Each change as (kind, first token, last token, replacement)."""

    def primed(node: Node) -> bool:
        tokens = definition.tokens[node.first : node.last + 1]
        return any(
            token.text in {"'", "UNCHANGED"}
            or (token.text in definitions and speaks_of_next_state(token.text, definitions))
            for token in tokens
        )

    def assigned(node: Node) -> str:
        """The variable of `x' = e`, or nothing."""
        left = definition.tokens[node.children[0].first : node.children[0].last + 1]
        is_assignment = definition.tokens[node.operator].text == "=" and len(left) == 2 and left[1].text == "'"
        return left[0].text if is_assignment else ""

    for node in nodes(root):
        if node.kind == "and":
            for child in node.children:
                if not primed(child) and child.kind != "and":
                    yield "drop", child.first, child.last, "TRUE"
        elif node.kind == "compare" and not node.binder:
            operator = definition.tokens[node.operator].text
            variable = assigned(node)
            if variable:
                yield "effect", node.first, node.last, f"{variable}' = {variable}"
            elif operator in SWAPS and not primed(node.children[0]):
                yield "swap", node.operator, node.operator, SWAPS[operator]


def read_reasons(path: Path) -> dict[tuple[str, str, str, int], str]:
    """The explained survivors of spec/mutants/X.toml."""
    if not path.is_file():
        return {}
    try:
        entries = tomllib.loads(path.read_text()).get("survivor", [])
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {error}") from error
    reasons = {}
    for number, entry in enumerate(entries, start=1):
        try:
            text = " ".join(str(entry["text"]).split())
            key = (str(entry["action"]), str(entry["kind"]), text, int(entry.get("occurrence", 1)))
            reason = str(entry["reason"]).strip()
        except KeyError as error:
            raise UsageError(f"{path}: survivor {number} has no {error.args[0]}") from error
        if not reason or key[1] not in KINDS:
            raise UsageError(f"{path}: survivor {number} has an empty reason or an unknown kind")
        reasons[key] = reason
    return reasons


def judge_mutant(
    tlc: Tlc,
    spec_dir: Path,
    spec: Path,
    mutant: Mutant | None,
    configurations: Sequence[Configuration],
    options: RunOptions,
) -> Fate:
    """Run the configurations on a mutant (None: the original) until one of them does not end as it expects."""
    with tempfile.TemporaryDirectory(prefix="refmq-mutant-") as folder_name:
        folder = Path(folder_name)
        for path in (*spec_dir.glob("*.tla"), *(configuration.path for configuration in configurations)):
            shutil.copy(path, folder)
        if mutant is not None:
            (folder / spec.name).write_text(mutant.apply(spec.read_text()))
        for configuration in configurations:
            copy = read_configuration(folder / configuration.path.name)
            outcome = run_tlc(
                tlc,
                copy.module,
                copy.path,
                arguments=tlc_arguments(copy, options),
                heap=MUTANT_HEAP,
                short_lived=True,
                timeout_s=options.timeout_s or MUTANT_TIMEOUT_S,
            )
            if outcome.found is Found.ERROR and no_finding(outcome.errors):
                return Fate(mutant, configuration.name, " ".join(outcome.errors)[:200], broken=True)
            verdict = judge(copy, outcome)
            if not verdict.ok and (outcome.found is not Found.TIMEOUT or mutant is None):
                return Fate(mutant, configuration.name, verdict.reason[:200])
    return Fate(mutant)


def no_finding(errors: Sequence[str]) -> bool:
    """Whether TLC failed without having evaluated anything: the text does not parse, or Java itself gave up.

    An error while a mutant is evaluated (a value outside of a function's domain) is a finding, and kills it.
    """
    unparsable = re.compile(r"Parsing or semantic analysis failed|\*\*\* Errors|Lexical error|OutOfMemory")
    return any(map(unparsable.search, errors)) or all(error.startswith("TLC ended with code") for error in errors)


def judge_mutants(
    tlc: Tlc,
    spec_dir: Path,
    spec: Path,
    mutants: Sequence[Mutant],
    configurations: Sequence[Configuration],
    options: RunOptions,
    jobs: int,
    on_fate: Callable[[Fate], None] | None = None,
) -> list[Fate]:
    """The fate of every mutant, in the order given. The original has to pass first; the quickest judge comes first."""
    seconds: dict[str, float] = {}

    def pass_original(configuration: Configuration) -> Fate:
        begin = time.monotonic()
        fate = judge_mutant(tlc, spec_dir, spec, None, [configuration], options)
        seconds[configuration.name] = time.monotonic() - begin
        return fate

    def one(mutant: Mutant) -> Fate:
        fate = judge_mutant(tlc, spec_dir, spec, mutant, judges, options)
        if on_fate is not None:
            on_fate(fate)
        return fate

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        for original in pool.map(pass_original, configurations):
            if original.killed_by:
                raise CheckFound(f"without any mutation {original.killed_by} fails: {original.finding}")
        judges = sorted(configurations, key=lambda configuration: seconds[configuration.name])
        return list(pool.map(one, mutants))
