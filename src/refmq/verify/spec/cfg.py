r"""TLC's configuration files as values: read, combine, write.

A configuration file assigns constants, names a specification and lists what to check:

    SPECIFICATION Spec
    CONSTANTS
        MaxFaults = 1  Faults = {"Promote"}     assignments
        MasterHeartbeat <- Never                replacements: one definition stands in for another
    INVARIANTS TypeOK NoFalseAck
    PROPERTIES CatchUp
    SYMMETRY Alike

A `Cfg` is such a file without its comments. `changed_by` puts a second, partial one on top of it, which is how a
configuration of spec/ is made from its protocol's base.cfg.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

SECTIONS: Final = {
    "CONSTANT": "constants",
    "CONSTANTS": "constants",
    "SPECIFICATION": "specification",
    "INVARIANT": "invariants",
    "INVARIANTS": "invariants",
    "PROPERTY": "properties",
    "PROPERTIES": "properties",
    "CONSTRAINT": "constraints",
    "CONSTRAINTS": "constraints",
    "ACTION_CONSTRAINT": "action_constraints",
    "ACTION_CONSTRAINTS": "action_constraints",
    "SYMMETRY": "symmetry",
    "VIEW": "view",
}
"""Keyword -> the field that it fills. INIT and NEXT are not used here: SPECIFICATION says both."""

SINGLE: Final = ("specification", "symmetry", "view")
LISTS: Final = ("invariants", "properties", "constraints", "action_constraints")
LINE_WIDTH: Final = 116
TOKEN: Final = re.compile(r'"[^"]*"|<-|[{}=,]|[^\s{}=,"<]+|\S')
COMMENT: Final = re.compile(r"\\\*[^\n]*|\(\*.*?\*\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Cfg:
    """One configuration file. Empty strings and tuples stand for sections that it does not have."""

    specification: str = ""
    constants: Mapping[str, str] = field(default_factory=dict)
    """Name -> value, in TLA+."""
    replacements: Mapping[str, str] = field(default_factory=dict)
    """Name -> the definition that stands in for it."""
    invariants: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    action_constraints: tuple[str, ...] = ()
    symmetry: str = ""
    view: str = ""

    def __post_init__(self) -> None:
        both = set(self.constants) & set(self.replacements)
        assert not both, f"{sorted(both)} are assigned and replaced"

    def changed_by(self, other: Cfg) -> Cfg:
        """This file with the assignments of the other one added. A list in the other one replaces the list here."""
        constants = without(self.constants, other.replacements) | dict(other.constants)
        replacements = without(self.replacements, other.constants) | dict(other.replacements)
        return Cfg(
            other.specification or self.specification,
            constants,
            replacements,
            other.invariants or self.invariants,
            other.properties or self.properties,
            other.constraints or self.constraints,
            other.action_constraints or self.action_constraints,
            other.symmetry or self.symmetry,
            other.view or self.view,
        )

    def unset(self, names: Iterable[str]) -> Cfg:
        """This file without the named constants, replacements or sections. ValueError names what it does not have."""
        gone = set(names)
        sections = {SECTIONS[name] for name in gone if name in SECTIONS}
        known = {*self.constants, *self.replacements}
        known |= {name for name in gone if name in SECTIONS and getattr(self, SECTIONS[name])}
        if gone - known:
            raise ValueError(f"there is no {', '.join(sorted(gone - known))} to unset")
        kept = {name: getattr(self, name) for name in (*SINGLE, *LISTS) if name not in sections}
        return Cfg(
            constants=without(self.constants, gone),
            replacements=without(self.replacements, gone),
            **kept,
        )

    def render(self) -> str:
        """The text of the file, one section after the other."""
        lines = [f"SPECIFICATION {self.specification}"] if self.specification else []
        if self.constants or self.replacements:
            lines.append("CONSTANTS")
            assignments = (f"{name} = {value}" for name, value in self.constants.items())
            lines += [f"    {line}" for line in wrapped(assignments)]
            lines += [f"    {name} <- {body}" for name, body in self.replacements.items()]
        for keyword in ("INVARIANTS", "PROPERTIES", "CONSTRAINTS", "ACTION_CONSTRAINTS"):
            names: tuple[str, ...] = getattr(self, SECTIONS[keyword])
            if names:
                lines += [keyword, *(f"    {line}" for line in wrapped(names, " "))]
        lines += [f"SYMMETRY {self.symmetry}"] if self.symmetry else []
        lines += [f"VIEW {self.view}"] if self.view else []
        return "\n".join(lines) + "\n"


def without(entries: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    left_out = set(names)
    return {name: value for name, value in entries.items() if name not in left_out}


def wrapped(parts: Iterable[str], between: str = "  ") -> Iterator[str]:
    """The parts in lines that are not too long."""
    line = ""
    for part in parts:
        if line and len(line) + len(between) + len(part) > LINE_WIDTH:
            yield line
            line = part
        else:
            line = f"{line}{between}{part}" if line else part
    if line:
        yield line


def read_cfg(text: str) -> Cfg:
    """Read a configuration file, or a part of one. ValueError says what cannot be read."""
    tokens = TOKEN.findall(COMMENT.sub(" ", text))
    constants: dict[str, str] = {}
    replacements: dict[str, str] = {}
    named: dict[str, list[str]] = {}
    section = ""
    at = 0
    while at < len(tokens):
        word = tokens[at]
        if word in SECTIONS:
            section = SECTIONS[word]
            at += 1
        elif section == "constants":
            name, sign, value, at = read_assignment(tokens, at)
            if name in constants or name in replacements:
                raise ValueError(f"{name} is given twice")
            (constants if sign == "=" else replacements)[name] = value
        elif section and re.fullmatch(r"\w+", word):
            named.setdefault(section, []).append(word)
            at += 1
        else:
            raise ValueError(f"cannot read {word!r}")
    for name in SINGLE:
        if len(named.get(name, ())) > 1:
            raise ValueError(f"{name.upper()} takes one name, not {len(named[name])}")
    return Cfg(
        constants=constants,
        replacements=replacements,
        **{name: named[name][0] if name in named else "" for name in SINGLE},  # type: ignore[arg-type]  # str fields
        **{name: tuple(named.get(name, ())) for name in LISTS},  # type: ignore[arg-type]  # tuple fields
    )


def read_assignment(tokens: list[str], at: int) -> tuple[str, str, str, int]:
    """Name, sign and value of the assignment at a position, and the position behind it."""
    name, sign, first = (*tokens[at : at + 3], "", "", "")[:3]
    if not re.fullmatch(r"\w+", name) or sign not in {"=", "<-"} or not first or first in SECTIONS:
        raise ValueError(f"cannot read an assignment at {' '.join(tokens[at : at + 3])!r}")
    if first != "{":
        return name, sign, first, at + 3
    if "}" not in tokens[at:]:
        raise ValueError(f"the set of {name} has no end")
    end = tokens.index("}", at)
    members = [token for token in tokens[at + 3 : end] if token != ","]
    return name, sign, "{" + ", ".join(members) + "}", end + 1
