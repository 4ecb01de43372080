r"""Mutants: the specification with one guard missing or one comparison changed. Does anything notice?

They are made from every definition that `Next` reaches (in a module that extends a protocol: from its own definitions
that its own `...Next` reaches); the last kind is made from what `FairSpec` adds to `Next`:

| kind   | what is changed                                                     | example                          |
|--------|---------------------------------------------------------------------|----------------------------------|
| drop   | one conjunct that does not mention the next state becomes TRUE      | `/\ flushed >= end` is gone      |
| swap   | one comparison becomes its neighbour                                | `<` to `<=`, `=` to `#`          |
| effect | one `x' = e` becomes `x' = x`                                       | a forgotten assignment           |
| update | one of several `!.f = e` in an EXCEPT becomes `!.f = @`             | a forgotten part of one          |
| then   | an IF condition that is not a comparison becomes TRUE               | a switch that is always on       |
| else   | ... becomes FALSE                                                   | ... or off                       |
| fair   | one conjunct with WF_ or SF_ becomes TRUE                           | an action that need not happen   |

A conjunct that only names a definition whose body is TRUE is left alone: models bound themselves by giving it another
body. `judging` finds out what becomes of the mutants. Survivors are explained in judges/X.survivors.toml, one entry
each; a survivor without a reason, and a reason without its survivor, are failures.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from refmq.errors import UsageError
from refmq.verify.spec.actions import is_group
from refmq.verify.spec.syntax import (
    Definition,
    Node,
    definitions_of,
    mentions_next_state,
    reached_from,
    read_expression,
)

KINDS = ("drop", "swap", "effect", "update", "then", "else", "fair")
FAIRNESS = ("WF_", "SF_")
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


Reasons = dict[tuple[str, str, str, int], str]
"""Why a mutant survives, by its key."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of the specification's text: `text[start:end]` becomes `replacement`."""

    definition: str
    kind: str
    line: int
    original: str
    """What is changed, on one line with single spaces: how an explanation names it."""
    occurrence: int
    """1 for the first such text in its definition, 2 for the next."""
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
        """The mutated text. What follows keeps its column where there is room: junction lists depend on it."""
        assert 0 <= self.start < self.end <= len(text), "it was made from this text"
        old = text[self.start : self.end]
        padding = " " * max(0, len(old.rpartition("\n")[2]) - len(self.replacement)) if "\n" not in old else ""
        return text[: self.start] + self.replacement + padding + "\n" * old.count("\n") + text[self.end :]


def mutants_of(text: str, kinds: Sequence[str] = KINDS) -> list[Mutant]:
    """Every mutant of a specification, in the order of its lines."""
    definitions = definitions_of(text)
    seen: dict[tuple[str, str, str], int] = {}
    found = []
    for name in mutated_definitions(definitions):
        definition = definitions[name]
        try:
            root = read_expression(definition)
        except ValueError as error:
            raise UsageError(f"the mutation tool cannot read {name}: {error}") from error
        for kind, first, last, replacement in changes(root, definition, definitions):
            if kind not in kinds:
                continue
            start, end = definition.tokens[first].start, definition.tokens[last].end
            original = " ".join(text[start:end].split())
            if kind in ("swap", "update"):
                original = whole_of_part(text, definition, root, first)
            seen[name, kind, original] = seen.get((name, kind, original), 0) + 1
            line = definition.tokens[first].line + 1
            found.append(
                Mutant(name, kind, line, original, seen[name, kind, original], start, end, replacement),
            )
    return sorted(found, key=lambda mutant: (mutant.line, mutant.start, mutant.kind))


def mutated_definitions(definitions: dict[str, Definition]) -> list[str]:
    """What `Next` reaches, except definitions that only list actions; and the fairness conditions."""
    root = next_of(definitions)
    steps = reached_from(root, definitions)
    actions = [name for name in steps if name != root and not is_group(definitions[name], definitions)]
    fair = [name for name in reached_from("FairSpec", definitions) if name not in steps]
    return actions + [name for name in fair if any(is_fairness(token.text) for token in definitions[name].tokens)]


def next_of(definitions: dict[str, Definition]) -> str:
    """`Next`, or the `...Next` of a module that extends a protocol."""
    return next((name for name in definitions if name.endswith("Next") and name != "Next"), "Next")


def is_fairness(text: str) -> bool:
    return text.startswith(FAIRNESS)


def whole_of_part(text: str, definition: Definition, root: Node, part: int) -> str:
    """The whole comparison or update that has this token as its operator or as the first one of its new value."""
    for node in nodes(root):
        is_swap = node.kind == "compare" and node.operator == part
        if is_swap or (node.kind == "update" and node.children[-1].first == part):
            return " ".join(text[definition.tokens[node.first].start : definition.tokens[node.last].end].split())
    raise AssertionError("a part without its whole")


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
            or (token.text in definitions and mentions_next_state(token.text, definitions))
            for token in tokens
        )

    def assigned(node: Node) -> str:
        """The variable of `x' = e`, or nothing."""
        left = definition.tokens[node.children[0].first : node.children[0].last + 1]
        is_assignment = definition.tokens[node.operator].text == "=" and len(left) == 2 and left[1].text == "'"
        return left[0].text if is_assignment else ""

    def bounds_the_model(node: Node) -> bool:
        """`Room` or `MayHappen(kind)`, where the specification says `Room == TRUE`: MCX puts its bounds there."""
        named = definitions.get(definition.tokens[node.first].text)
        calls = definition.tokens[node.last].text == ")" or node.first == node.last
        return node.kind == "other" and calls and named is not None and [t.text for t in named.tokens] == ["TRUE"]

    for node in nodes(root):
        if node.kind == "and":
            for child in node.children:
                texts = [token.text for token in definition.tokens[child.first : child.last + 1]]
                if any(map(is_fairness, texts)):
                    yield "fair", child.first, child.last, "TRUE"
                elif not primed(child) and child.kind != "and" and not bounds_the_model(child):
                    yield "drop", child.first, child.last, "TRUE"
        elif node.kind == "compare" and not node.binder:
            operator = definition.tokens[node.operator].text
            variable = assigned(node)
            if variable:
                value = [token.text for token in definition.tokens[node.operator + 1 : node.last + 1]]
                if value != [variable]:  # otherwise it already says that nothing changes
                    yield "effect", node.first, node.last, f"{variable}' = {variable}"
            elif operator in SWAPS and not primed(node.children[0]):
                yield "swap", node.operator, node.operator, SWAPS[operator]
        elif node.kind == "if" and node.children[0].kind != "compare":
            condition = node.children[0]
            yield "then", condition.first, condition.last, "TRUE"
            yield "else", condition.first, condition.last, "FALSE"
        updates = [child for child in node.children if child.kind == "update"]
        for child in updates if len(updates) > 1 else ():
            yield "update", child.children[-1].first, child.last, "@"


def survivors_file(folder: Path, module: str) -> Path:
    """Where the survivors of a module are explained, in the folder of its protocol."""
    return folder / "judges" / f"{module}.survivors.toml"


def read_reasons(path: Path) -> Reasons:
    """The explained survivors of judges/X.survivors.toml."""
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
