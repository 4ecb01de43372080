r"""One configuration: a question to TLC, and what it has to answer.

A configuration is an entry of a `configurations.toml`. It says what it is about and what it expects, and changes its
protocol's base.cfg in TLC's own syntax:

    [slave_ahead]
    about = "W-A6: a slave that is ahead of its master reconnects for ever."
    expect = "violation (liveness) CatchUp"
    repair = "slave_ahead_repaired"
    cfg = '''
    SPECIFICATION FairSpec
    CONSTANTS Faults = {"MasterPowerLoss"}
    PROPERTY CatchUp
    '''

| key               | meaning                                                                                     |
|-------------------|---------------------------------------------------------------------------------------------|
| `about`           | what a reader should know, in a sentence or a few                                           |
| `expect`          | `ok`, `deadlock`, `violation NAME` or `violation (liveness) NAME`                           |
| `repair`          | in weak/: the configuration with the repair, or `none: why`                                 |
| `profile`         | `quick` (every time; the default), `deep` (by hand) or `quick, deep`                        |
| `mutants`         | true: small enough to judge mutants                                                         |
| `coverage`        | true: every action in Next must be taken at least once                                      |
| `coverage_except` | the same, but for these actions                                                             |
| `deadlock`        | true: look for deadlocks as well                                                            |
| `depth`, `walks`  | of random walks (SIM modules)                                                               |
| `timeout`         | seconds after which a run is given up                                                       |
| `module`          | the module that TLC runs; MCX by default                                                    |
| `like`            | another entry of the same file to start from, instead of base.cfg                           |
| `with`            | names of `[preset.NAME]` tables in the protocol's own configurations.toml, applied in order |
| `unset`           | constants, replacements or sections that this configuration does not have                   |
| `cfg`             | what it sets, applied last                                                                  |

`like` hands on what TLC reads (`module`, `with`, `unset`, `cfg`), never what an entry says about itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from refmq.errors import UsageError
from refmq.verify.spec.cfg import Cfg

DEFAULT_TIMEOUT_S: Final = 900  # a quick configuration takes seconds; this is for one that has run away
DEFAULT_WALKS: Final = 1000
DEFAULT_DEPTH: Final = 100

KEYS: Final[Mapping[str, type]] = {
    "about": str,
    "expect": str,
    "repair": str,
    "profile": str,
    "mutants": bool,
    "coverage": bool,
    "coverage_except": list,
    "deadlock": bool,
    "depth": int,
    "walks": int,
    "timeout": int,
    "module": str,
    "like": str,
    "with": list,
    "unset": list,
    "cfg": str,
}
"""The keys of an entry and the types of their values."""

Entry = Mapping[str, object]
"""An entry of a configurations.toml."""


class Profile(StrEnum):
    """When a configuration runs."""

    QUICK = "quick"
    DEEP = "deep"


@dataclass(frozen=True, slots=True)
class Expectation:
    """What TLC has to find. `name` is the property of an expected violation, empty otherwise."""

    kind: str  # "ok", "violation" or "deadlock"
    name: str = ""
    liveness: bool = False

    def __str__(self) -> str:
        if self.kind != "violation":
            return self.kind
        return f"violation {'(liveness) ' if self.liveness else ''}{self.name}"


@dataclass(frozen=True, slots=True)
class Configuration:
    """One question to TLC."""

    name: str
    """Where it stands: `ha_replication/weak/slave_ahead` is the entry slave_ahead of that folder's table."""
    protocol: str
    folder: Path
    """The folder of the protocol."""
    module: Path
    cfg: Cfg
    about: tuple[str, ...]
    expect: Expectation
    profiles: frozenset[Profile]
    repair: str = ""
    mutants: bool = False
    covers: bool = False
    covers_except: frozenset[str] = frozenset()
    deadlock: bool = False
    depth: int = DEFAULT_DEPTH
    walks: int = DEFAULT_WALKS
    timeout_s: int = DEFAULT_TIMEOUT_S

    @property
    def role(self) -> str:
        """MC, SIM or Trace: how its module is run."""
        return role_of(self.module.stem)

    @property
    def is_weak_point(self) -> bool:
        """Whether it shows a promise that RocketMQ breaks, in weak/."""
        return "/weak/" in self.name and self.expect.kind == "violation"

    @property
    def text(self) -> str:
        """The file that TLC reads, with a header for people."""
        return "".join(rf"\* {line}".rstrip() + "\n" for line in self.header()) + self.cfg.render()

    def header(self) -> list[str]:
        """What the configuration says about itself, a line each."""
        lines = [f"expect: {self.expect}", f"configuration: {self.name}"]
        lines.append(f"profile: {', '.join(sorted(self.profiles, reverse=True))}")
        lines += [f"repair: {self.repair}"] if self.repair else []
        lines += ["mutants: yes"] if self.mutants else []
        if self.covers:
            left_out = " ".join(sorted(self.covers_except))
            lines.append(f"coverage: {f'except {left_out}' if left_out else 'yes'}")
        lines += ["deadlock: yes"] if self.deadlock else []
        if self.role == "SIM":
            lines += [f"depth: {self.depth}", f"walks: {self.walks}"]
        return [*lines, f"timeout: {self.timeout_s}", *self.about]


def role_of(module: str) -> str:
    """MCX -> MC, SIMX -> SIM, TraceX -> Trace."""
    role = next((role for role in ("MC", "SIM", "Trace") if module.startswith(role)), "")
    if not role:
        raise UsageError(f"{module}: the name of a module that TLC runs begins with MC, SIM or Trace")
    return role


def check_entry(where: str, entry: object) -> Entry:
    """The entry, when it has nothing but known keys with values of their types."""
    if not isinstance(entry, dict):
        raise UsageError(f"{where} is not a table")
    for key, value in entry.items():
        if key not in KEYS:
            raise UsageError(f"{where}: unknown key {key!r}; known are {', '.join(sorted(KEYS))}")
        if type(value) is not KEYS[key] or (
            isinstance(value, list) and not all(isinstance(member, str) for member in value)
        ):
            raise UsageError(f"{where}: {key} is not a {'list of names' if KEYS[key] is list else KEYS[key].__name__}")
        if isinstance(value, int) and not isinstance(value, bool) and value <= 0:
            raise UsageError(f"{where}: {key} is a positive number, not {value}")
    return entry


def make_configuration(name: str, protocol: str, folder: Path, module: Path, cfg: Cfg, entry: Entry) -> Configuration:
    """The configuration of an entry that `check_entry` has passed, with the file that its table makes of it."""
    about = text_of(entry, "about")
    if not about:
        raise UsageError(f"{name} does not say what it is about")
    expect = read_expectation(name, text_of(entry, "expect"), cfg)
    left_out = names_of(entry, "coverage_except")
    return Configuration(
        name=name,
        protocol=protocol,
        folder=folder,
        module=module,
        cfg=cfg,
        about=tuple(line.strip() for line in about.strip().splitlines()),
        expect=expect,
        profiles=read_profiles(name, text_of(entry, "profile") or Profile.QUICK),
        repair=text_of(entry, "repair"),
        mutants=entry.get("mutants") is True,
        covers=entry.get("coverage") is True or bool(left_out),
        covers_except=frozenset(left_out),
        deadlock=entry.get("deadlock") is True or expect.kind == "deadlock",
        depth=number_of(entry, "depth", DEFAULT_DEPTH),
        walks=number_of(entry, "walks", DEFAULT_WALKS),
        timeout_s=number_of(entry, "timeout", DEFAULT_TIMEOUT_S),
    )


def read_expectation(name: str, text: str, cfg: Cfg) -> Expectation:
    if text in {"ok", "deadlock"}:
        return Expectation(text)
    match = re.fullmatch(r"violation (\(liveness\) )?([A-Za-z]\w*)", text)
    if match is None:
        raise UsageError(f"{name}: cannot read the expectation {text!r}")
    liveness = match[1] is not None
    if match[2] not in {*cfg.invariants, *cfg.properties}:
        raise UsageError(f"{name} expects a violation of {match[2]}, which it does not list")
    if liveness and cfg.properties != (match[2],):
        # TLC says that a temporal property is violated, but not which one.
        raise UsageError(f"{name}: with a liveness expectation {match[2]} must be the only PROPERTY")
    return Expectation("violation", match[2], liveness)


def read_profiles(name: str, text: str) -> frozenset[Profile]:
    try:
        return frozenset(Profile(word) for word in re.split(r"[\s,]+", text))
    except ValueError as error:
        raise UsageError(f"{name}: profile is quick, deep or both, not {text!r}") from error


def text_of(entry: Entry, key: str) -> str:
    value = entry.get(key, "")
    assert isinstance(value, str), f"{key} was checked to be text"
    return value


def names_of(entry: Entry, key: str) -> tuple[str, ...]:
    value = entry.get(key, [])
    assert isinstance(value, list), f"{key} was checked to be a list"
    return tuple(map(str, value))


def number_of(entry: Entry, key: str, default: int) -> int:
    value = entry.get(key, default)
    assert isinstance(value, int), f"{key} was checked to be a number"
    assert value > 0
    return value
