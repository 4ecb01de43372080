"""Mechanical mutants that are no mistakes, each with the reason why: equivalents.toml, beside this module.

    [[equivalent]]
    module = "scan"                # of refmq.store; others with their package, as in "plane.pull"
    rule = "guard"                 # see mechanical.py
    text = "if ..."                # the line as it stands in the source
    nth = [1]                      # which of the mutants with that rule and line, from 0; all of them without it
    why = "..."

An entry names its line by its text, so it holds as long as the line stands. One that fits no mutant is an error.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.mutants.mechanical import Mechanical

FILE: Final = Path(__file__).parent / "equivalents.toml"


@dataclass(frozen=True, slots=True)
class Equivalent:
    """Some mutants of one line, and why nobody can tell them from the original."""

    module: str
    rule: str
    text: str
    why: str
    nth: tuple[int, ...] = ()

    def fits(self, mutant: Mechanical, position: int) -> bool:
        """`position` counts the mutants with the same rule and line before this one."""
        module = f"refmq.{self.module}" if "." in self.module else f"refmq.store.{self.module}"
        same = (mutant.module, mutant.rule, mutant.text) == (module, self.rule, self.text)
        return same and (not self.nth or position in self.nth)


def read(path: Path = FILE) -> tuple[Equivalent, ...]:
    entries = tomllib.loads(path.read_text()).get("equivalent", [])
    return tuple(Equivalent(**{**entry, "nth": tuple(entry.get("nth", ()))}) for entry in entries)


def sort_out(
    mutants: Iterable[Mechanical], known: tuple[Equivalent, ...]
) -> tuple[list[Mechanical], list[Mechanical], list[Equivalent]]:
    """The mutants that are mistakes, those that are none, and the entries that fit no mutant."""
    seen: dict[tuple[str, str, str], int] = {}
    mistakes: list[Mechanical] = []
    none: list[Mechanical] = []
    unused = set(known)
    for mutant in mutants:
        key = (mutant.module, mutant.rule, mutant.text)
        position = seen[key] = seen.get(key, -1) + 1
        fitting = [entry for entry in known if entry.fits(mutant, position)]
        (none if fitting else mistakes).append(mutant)
        unused.difference_update(fitting)
    return mistakes, none, sorted(unused, key=lambda entry: (entry.module, entry.text))
