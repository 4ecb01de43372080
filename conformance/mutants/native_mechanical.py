"""Mutants of the C sources by rule, as `mechanical` makes them of Python's.

| rule      | what it does                                                      |
|-----------|-------------------------------------------------------------------|
| drop      | leaves out a call that stands for its effect                      |
| keep      | leaves out an assignment to a field: the state stays as it was    |
| compare   | < for <=, == for !=, and back                                     |
| sum       | + for -, and back                                                 |
| constant  | one more, or one less                                             |
| guard     | an `if` that never holds, or always                               |
| boolean   | && for ||, and back                                               |
| answer    | `return true` for `return false`, and back                        |

The sources are read as text: one style, one statement a line. Comments, strings, directives and assertions are left
alone. What does not compile afterwards is no mutant, which the trial finds out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).parent.parent.parent / "src/refmq_fast"
FOLDERS: Final = ("core", "store", "plane", "shell")

NOT_THE_BROKERS: Final = frozenset({"digest.c", "log_units.c"})
"""What reads traces and stores for `refmq verify`; its tests compare it with numpy."""

_NOT_CODE: Final = re.compile(
    r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|^[ \t]*#(?:\\\n|[^\n])*", re.DOTALL | re.MULTILINE
)
_SEEDED: Final = re.compile(r"^[ \t]*#\s*if(?:n?def)? .*?^[ \t]*#\s*endif", re.DOTALL | re.MULTILINE)
"""What stands between directives is another processor's, or a mistake already."""

_OTHER: Final = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
}  # fmt: skip
_OPERATOR: Final = re.compile(r"(?<= )(<=|>=|==|!=|<|>|&&|\|\||\+|-)(?= )")
_NUMBER: Final = re.compile(r"(?<![\w.])(\d+)(?=[uUlL]*(?![\w.]))")
_CALL: Final = re.compile(r"^[ \t]+((?:\(void\))?[a-z_]\w*\([^;{}]*\));$|^[ \t]+(RMQ_TRY\([^;{}]*\));$", re.MULTILINE)
_ASSIGNMENT: Final = re.compile(r"^[ \t]+(\(?\*?\w[\w\[\]().>-]*(?:->|\.)\w+ [-+|&]?= [^;{}]*);$", re.MULTILINE)
_IF: Final = re.compile(r"\bif \(([^;{}\n]*)\) \{$", re.MULTILINE)
_ANSWER: Final = re.compile(r"\breturn (true|false);")


@dataclass(frozen=True, slots=True)
class NativeMutant:
    """One change of one file."""

    path: str
    """Below the sources."""
    number: int
    rule: str
    line: int
    text: str
    """The line as it stands."""
    start: int
    end: int
    instead: str

    @property
    def name(self) -> str:
        return f"{self.path}:{self.number}"

    def applied(self, source: str) -> str:
        return source[: self.start] + self.instead + source[self.end :]


def mutants_of(path: str, source: str) -> list[NativeMutant]:
    """All mutants of a file, in the order of its text."""
    found = sorted(_places(source), key=lambda place: (place[1], place[2], place[3]))
    lines = source.splitlines()
    mutants = []
    for number, (rule, start, end, instead) in enumerate(found):
        line = source.count("\n", 0, start) + 1
        mutants.append(NativeMutant(path, number, rule, line, lines[line - 1].strip(), start, end, instead))
    return mutants


def every_mutant(folders: tuple[str, ...] = FOLDERS) -> Iterator[NativeMutant]:
    for folder in folders:
        for file in sorted((SOURCES / folder).glob("*.c")):
            if file.name not in NOT_THE_BROKERS:
                yield from mutants_of(f"{folder}/{file.name}", file.read_text())


def _code_of(source: str) -> str:
    """The same text with everything blank that no rule may touch."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match[0])

    code = _NOT_CODE.sub(blank, _SEEDED.sub(blank, source))
    for found in re.finditer(r"\bassert\(|\bRMQ_IS_RIGHT\(", code):
        end = _closing(code, found.end())
        code = code[: found.start()] + re.sub(r"[^\n]", " ", code[found.start() : end]) + code[end:]
    return code


def _closing(code: str, at: int) -> int:
    """Behind the parenthesis that closes the one before `at`."""
    depth = 1
    while depth and at < len(code):
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        at += 1
    return at


def _places(source: str) -> Iterator[tuple[str, int, int, str]]:
    code = _code_of(source)
    inside = _function_bodies(code)

    def matches(pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
        return (match for match in pattern.finditer(code) if any(a <= match.start() < b for a, b in inside))

    for match in matches(_OPERATOR):
        operator = match[1]
        rule = "boolean" if operator in ("&&", "||") else "sum" if operator in "+-" else "compare"
        yield rule, match.start(), match.end(), _OTHER[operator]
    for match in matches(_NUMBER):
        for value in (int(match[1]) + 1, int(match[1]) - 1):
            if value >= 0:
                yield "constant", match.start(1), match.end(1), str(value)
    for match in matches(_CALL):
        yield "drop", *match.span(1 if match[1] else 2), ""
    for match in matches(_ASSIGNMENT):
        yield "keep", *match.span(1), ""
    for match in matches(_IF):
        for never in ("0 && ", "1 || "):
            yield "guard", *match.span(1), f"{never}({source[match.start(1) : match.end(1)]})"
    for match in matches(_ANSWER):
        yield "answer", *match.span(1), "false" if match[1] == "true" else "true"


def _function_bodies(code: str) -> list[tuple[int, int]]:
    """From the brace in the first column to the one that closes it."""
    return [match.span() for match in re.finditer(r"^\{$.*?^\}$", code, re.DOTALL | re.MULTILINE)]
