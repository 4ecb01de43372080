"""What is in spec/: the protocols, their modules, and the configurations that their tables make.

    spec/<protocol>/X.tla, XAbstract.tla, SIMX.tla, TraceX.tla ...
                    base.cfg              what most configurations of the protocol have in common
                    configurations.toml   presets; random walks and traces
                    mc/                   MCX.tla, and the questions about the protocol
                    weak/                 the weak points of RocketMQ, each with its repair
                    judges/               small models that judge mutants, and the survivors with their reasons

Every `configurations.toml` below a protocol's folder is a table of its configurations (see `configuration`). No .cfg
file but base.cfg is kept: the runner makes it when it needs it, and `refmq spec cfg NAME` prints it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from refmq.errors import UsageError
from refmq.verify.spec.cfg import Cfg, read_cfg
from refmq.verify.spec.configuration import (
    Configuration,
    Entry,
    Expectation,
    Profile,
    check_entry,
    make_configuration,
    names_of,
    text_of,
)

__all__ = [
    "Configuration",
    "Expectation",
    "Profile",
    "extensions",
    "find_configurations",
    "find_module",
    "find_protocols",
    "find_spec_dir",
    "library",
    "modules_read",
]

BASE: Final = "base.cfg"
TABLE: Final = "configurations.toml"
PRESETS: Final = "preset"
INSTALLED: Final = Path(__file__).parent / "protocols"
"""Where a wheel has the specifications; pyproject.toml says so."""
LIKE_DEPTH_MAX: Final = 5  # of entries that start from one another; more is hard to read, and a circle never ends
OWN_STEPS: Final = re.compile(r"^\w+Next\s*==", re.MULTILINE)
READ_MODULES: Final = re.compile(r"\bEXTENDS\s+((?:\w+\s*,\s*)*\w+)|\bINSTANCE\s+(\w+)")


def find_spec_dir(given: Path | None) -> Path:
    """The folder of the specifications: the given one, ./spec, that of the source checkout, or what was installed."""
    if given is not None:
        if not given.is_dir():
            raise UsageError(f"{given} is not a folder")
        return given.resolve()
    beside_sources = Path(__file__).resolve().parents[4] / "spec"
    for candidate in (Path.cwd() / "spec", beside_sources, INSTALLED):
        if any(candidate.glob(f"*/{BASE}")):
            return candidate.resolve()
    raise UsageError("there are no specifications in this installation of refmq: give their folder with --spec-dir DIR")


def find_protocols(spec_dir: Path) -> dict[str, Path]:
    """Protocol -> its folder: every X with an X.tla beside a base.cfg and an MCX.tla in mc/."""
    found = {}
    for base in sorted(spec_dir.glob(f"*/{BASE}")):
        names = [path.stem for path in base.parent.glob("*.tla") if (base.parent / "mc" / f"MC{path.name}").is_file()]
        if len(names) != 1:
            raise UsageError(f"{base.parent} needs one X.tla with an mc/MCX.tla, and has {len(names)}")
        found[names[0]] = base.parent
    return found


def library(folder: Path) -> list[Path]:
    """The folders in which TLC looks for the modules of a protocol."""
    below = sorted({path.parent for path in folder.glob("*/*.tla")})
    return [folder, *below]


def find_module(folder: Path, name: str) -> Path | None:
    """The file of a module of the protocol in this folder."""
    return next((path for place in library(folder) if (path := place / f"{name}.tla").is_file()), None)


def extensions(spec_dir: Path) -> dict[str, Path]:
    """The modules that give a protocol further actions, with a `...Next` of their own -> the protocol's folder."""
    return {
        path.stem: folder
        for folder in find_protocols(spec_dir).values()
        for path in sorted(folder.glob("*/MC*.tla"))
        if OWN_STEPS.search(path.read_text())
    }


def modules_read(folder: Path, module: Path) -> set[Path]:
    """The module and every one of its protocol's folder that it extends or instantiates, directly or not."""
    found: set[Path] = set()
    waiting: list[Path | None] = [module]
    while waiting:
        path = waiting.pop()
        if path is not None and path not in found:
            found.add(path)
            names = " ".join(" ".join(match) for match in READ_MODULES.findall(path.read_text()))
            waiting.extend(find_module(folder, name) for name in re.findall(r"\w+", names))
    return found


def find_configurations(spec_dir: Path, role: str | None = None) -> list[Configuration]:
    """Every configuration of every protocol, in the order of the tables, MC before SIM and Trace."""
    found = []
    for protocol, folder in find_protocols(spec_dir).items():
        shared = Shared.read(protocol, folder)
        for path in (*sorted(folder.glob(f"*/{TABLE}"), key=group_rank), folder / TABLE):
            if path.is_file():
                found += Table(shared, path).configurations()
    return [configuration for configuration in found if role is None or configuration.role == role]


def group_rank(path: Path) -> tuple[int, str]:
    groups = ("mc", "weak", "judges")
    name = path.parent.name
    return groups.index(name) if name in groups else len(groups), name


@dataclass(frozen=True, slots=True)
class Shared:
    """What the tables of one protocol have in common."""

    protocol: str
    folder: Path
    base: Cfg
    presets: Mapping[str, Entry]

    @classmethod
    def read(cls, protocol: str, folder: Path) -> Shared:
        presets = read_toml(folder / TABLE).get(PRESETS, {})
        assert isinstance(presets, dict), "[preset.NAME] makes a table"
        for name, entry in presets.items():
            check_entry(f"{folder.name}: preset {name}", entry)
        try:
            base = read_cfg((folder / BASE).read_text())
        except ValueError as error:
            raise UsageError(f"{folder / BASE}: {error}") from error
        return cls(protocol, folder, base, presets)


class Table:
    """One configurations.toml."""

    def __init__(self, shared: Shared, path: Path) -> None:
        self.shared, self.path = shared, path

    @cached_property
    def entries(self) -> dict[str, Entry]:
        read = {name: entry for name, entry in read_toml(self.path).items() if name != PRESETS}
        return {name: check_entry(self.full_name(name), entry) for name, entry in read.items()}

    def full_name(self, name: str) -> str:
        """`ha_replication/weak/NAME`: the path of the entry below spec/."""
        return "/".join([*self.path.parent.relative_to(self.shared.folder.parent).parts, name])

    def configurations(self) -> list[Configuration]:
        return [self.configuration(name) for name in self.entries]

    def configuration(self, name: str) -> Configuration:
        full_name, shared = self.full_name(name), self.shared
        module = find_module(shared.folder, self.module_name(name))
        if module is None:
            raise UsageError(f"{full_name}: there is no {self.module_name(name)}.tla in {shared.folder}")
        cfg = self.cfg(name)
        return make_configuration(full_name, shared.protocol, shared.folder, module, cfg, self.entries[name])

    def module_name(self, name: str) -> str:
        named = (text_of(entry, "module") for entry in reversed(self.line_of_descent(name)))
        return next((module for module in named if module), f"MC{self.shared.protocol}")

    def cfg(self, name: str) -> Cfg:
        """base.cfg, changed by the entries that this one starts from, and by the entry itself."""
        cfg = self.shared.base
        for entry in self.line_of_descent(name):
            try:
                for preset in names_of(entry, "with"):
                    if preset not in self.shared.presets:
                        raise ValueError(f"there is no preset {preset}")
                    cfg = changed(cfg, self.shared.presets[preset])
                cfg = changed(cfg, entry)
            except ValueError as error:
                raise UsageError(f"{self.full_name(name)}: {error}") from error
        return cfg

    def line_of_descent(self, name: str) -> list[Entry]:
        """The entry and those that it starts from, the first one first."""
        line = [self.entries[name]]
        while like := text_of(line[-1], "like"):
            if like not in self.entries:
                raise UsageError(f"{self.full_name(name)}: there is no {like} in {self.path}")
            if len(line) == LIKE_DEPTH_MAX:
                raise UsageError(f"{self.full_name(name)}: more than {LIKE_DEPTH_MAX} entries are like one another")
            line.append(self.entries[like])
        return line[::-1]


def changed(cfg: Cfg, entry: Entry) -> Cfg:
    return cfg.unset(names_of(entry, "unset")).changed_by(read_cfg(text_of(entry, "cfg")))


def read_toml(path: Path) -> dict[str, object]:
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(path.read_text())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error
