r"""What is in spec/: the configurations, and what each of them says about itself.

A configuration is an ordinary TLC `.cfg` file that opens with a header of comment lines which the runner reads:

    \* expect: ok                              everything listed holds
    \* expect: violation NoFalseAck            TLC must find this invariant or action property violated, no other
    \* expect: violation (liveness) Finishes   TLC must find this temporal property violated (the only PROPERTY)
    \* expect: deadlock                        TLC must find a state without a successor
    \* profile: quick                          when it runs: quick (every time), deep (by hand), or both
    \* mutants: yes                            small enough to judge mutants with
    \* coverage: yes                           every action of the protocol must be taken at least once
    \* coverage: except ExpireFile StopStore   ... but these
    \* deadlock: yes                           TLC looks for deadlocks as well (off by default)
    \* depth: 60                               SIM only: how long a random walk is
    \* walks: 2000                             SIM only: how many walks
    \* timeout: 900                            seconds after which the run is given up

`expect` is the first line of the file. Lines of the header that are not `key: value` are prose for people.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from refmq.errors import UsageError

DEFAULT_TIMEOUT_S = 900  # a quick configuration takes seconds; this is for one that has run away
DEFAULT_WALKS = 1000
DEFAULT_DEPTH = 100

HEADER_KEYS = frozenset({"expect", "profile", "mutants", "coverage", "deadlock", "depth", "walks", "timeout"})
CFG_KEYWORDS = frozenset(
    [
        *("CONSTANT", "CONSTANTS", "INIT", "NEXT", "SPECIFICATION", "INVARIANT", "INVARIANTS"),
        *("PROPERTY", "PROPERTIES", "CONSTRAINT", "CONSTRAINTS", "ACTION_CONSTRAINT", "ACTION_CONSTRAINTS"),
        *("VIEW", "SYMMETRY", "TYPE", "TYPE_CONSTRAINT"),
    ]
)
ROLES = ("MC", "SIM", "Trace")
OWN_STEPS = re.compile(r"^\w+Next\s*==", re.MULTILINE)
READ_MODULES = re.compile(r"\bEXTENDS\s+((?:\w+\s*,\s*)*\w+)|\bINSTANCE\s+(\w+)")


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
    """One `.cfg` file of spec/ and its header."""

    path: Path
    module: Path
    role: str
    protocol: str
    expect: Expectation
    profiles: frozenset[Profile]
    invariants: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    mutants: bool = False
    covers: bool = False
    covers_except: frozenset[str] = frozenset()
    deadlock: bool = False
    depth: int = DEFAULT_DEPTH
    walks: int = DEFAULT_WALKS
    timeout_s: int = DEFAULT_TIMEOUT_S
    prose: tuple[str, ...] = field(default=())

    @property
    def name(self) -> str:
        return self.path.stem


def find_spec_dir(given: Path | None) -> Path:
    """The folder of the specifications: the given one, ./spec, or the one of the source checkout."""
    if given is not None:
        if not given.is_dir():
            raise UsageError(f"{given} is not a folder")
        return given.resolve()
    beside_sources = Path(__file__).resolve().parents[4] / "spec"
    for candidate in (Path.cwd() / "spec", beside_sources):
        if any(candidate.glob("*.tla")):
            return candidate.resolve()
    raise UsageError("no folder with specifications: run inside a source checkout of refmq or give --spec-dir DIR")


def find_configurations(spec_dir: Path, role: str | None = None) -> list[Configuration]:
    """Every configuration in the folder, sorted by name."""
    found = [read_configuration(path) for path in sorted(spec_dir.glob("*.cfg"))]
    return [configuration for configuration in found if role is None or configuration.role == role]


def protocols(spec_dir: Path) -> list[str]:
    """The protocols in the folder: every X for which there are an X.tla and an MCX.tla."""
    stems = {path.stem for path in spec_dir.glob("*.tla")}
    return sorted(stem for stem in stems if f"MC{stem}" in stems)


def extensions(spec_dir: Path) -> list[str]:
    """The modules that give a protocol further actions: every MCX... .tla with a `...Next` of its own."""
    return sorted(path.stem for path in spec_dir.glob("MC*.tla") if OWN_STEPS.search(path.read_text()))


def modules_read(module: Path) -> set[Path]:
    """The module and every one in its folder that it extends or instantiates, directly or not."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        path = waiting.pop()
        if path.is_file() and path not in found:
            found.add(path)
            names = " ".join(" ".join(match) for match in READ_MODULES.findall(path.read_text()))
            waiting.extend(path.with_name(f"{name}.tla") for name in re.findall(r"\w+", names))
    return found


def read_configuration(path: Path) -> Configuration:
    """Read one `.cfg` file. A header that says nothing, or something unknown, is a usage error."""
    lines = path.read_text().splitlines()
    header, prose = read_header(path, lines)
    role, module = module_of(path)
    invariants, properties = listed_properties(lines)
    expect = read_expectation(path, header["expect"], properties)
    if expect.kind == "violation" and expect.name not in {*invariants, *properties}:
        raise UsageError(f"{path.name} expects a violation of {expect.name}, which it does not list")
    covers, covers_except = read_coverage(path, header.get("coverage", "no"))
    return Configuration(
        path=path,
        module=module,
        role=role,
        protocol=protocol_of(role, module),
        expect=expect,
        profiles=read_profiles(path, header.get("profile", "quick")),
        invariants=invariants,
        properties=properties,
        mutants=read_flag(path, "mutants", header),
        covers=covers,
        covers_except=covers_except,
        deadlock=read_flag(path, "deadlock", header) or expect.kind == "deadlock",
        depth=read_number(path, "depth", header, DEFAULT_DEPTH),
        walks=read_number(path, "walks", header, DEFAULT_WALKS),
        timeout_s=read_number(path, "timeout", header, DEFAULT_TIMEOUT_S),
        prose=prose,
    )


def read_header(path: Path, lines: list[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The `key: value` lines before the first line that is not a comment, and the prose between them."""
    header: dict[str, str] = {}
    prose = []
    for number, line in enumerate(lines, start=1):
        if not line.startswith(r"\*"):
            break
        match = re.fullmatch(r"\\\*\s*([a-z]+):\s*(.+?)\s*", line)
        if match is None:
            prose.append(line.removeprefix(r"\*").strip())
        elif match[1] not in HEADER_KEYS:
            raise UsageError(
                f"{path.name}:{number}: unknown key {match[1]!r}; known are {', '.join(sorted(HEADER_KEYS))}"
            )
        elif match[1] in header:
            raise UsageError(f"{path.name}:{number}: {match[1]} is given twice")
        else:
            header[match[1]] = match[2]
    if not lines or not re.match(r"\\\*\s*expect:", lines[0]):
        raise UsageError(rf"{path.name}: the first line must be `\* expect: ...`")
    return header, tuple(prose)


def read_expectation(path: Path, text: str, properties: tuple[str, ...]) -> Expectation:
    if text in {"ok", "deadlock"}:
        return Expectation(text)
    match = re.fullmatch(r"violation (\(liveness\) )?([A-Za-z]\w*)", text)
    if match is None:
        raise UsageError(f"{path.name}: cannot read the expectation {text!r}")
    liveness = match[1] is not None
    if liveness and properties != (match[2],):
        # TLC says that a temporal property is violated, but not which one.
        raise UsageError(f"{path.name}: with a liveness expectation {match[2]} must be the only PROPERTY")
    return Expectation("violation", match[2], liveness)


def read_profiles(path: Path, text: str) -> frozenset[Profile]:
    try:
        return frozenset(Profile(word) for word in re.split(r"[\s,]+", text))
    except ValueError as error:
        raise UsageError(f"{path.name}: profile is quick, deep or both, not {text!r}") from error


def read_coverage(path: Path, text: str) -> tuple[bool, frozenset[str]]:
    words = text.replace(",", " ").split()
    if words == ["no"]:
        return False, frozenset()
    if words == ["yes"]:
        return True, frozenset()
    if words[0] == "except" and len(words) > 1:
        return True, frozenset(words[1:])
    raise UsageError(f"{path.name}: coverage is yes, no or `except ACTION ...`, not {text!r}")


def read_flag(path: Path, key: str, header: dict[str, str]) -> bool:
    text = header.get(key, "no")
    if text not in {"yes", "no"}:
        raise UsageError(f"{path.name}: {key} is yes or no, not {text!r}")
    return text == "yes"


def read_number(path: Path, key: str, header: dict[str, str], default: int) -> int:
    text = header.get(key, str(default))
    if not text.isdecimal() or int(text) == 0:
        raise UsageError(f"{path.name}: {key} is a positive number, not {text!r}")
    return int(text)


def module_of(path: Path) -> tuple[str, Path]:
    """The role and the module of a configuration: the module with the longest name that begins its name."""
    role = next((role for role in ROLES if path.stem.startswith(role)), None)
    if role is None:
        raise UsageError(f"{path.name}: the name of a configuration begins with MC, SIM or Trace")
    modules = [module for module in path.parent.glob(f"{role}*.tla") if path.stem.startswith(module.stem)]
    if not modules:
        raise UsageError(f"{path.name}: there is no {role}*.tla whose name begins it")
    return role, max(modules, key=lambda module: len(module.stem))


def protocol_of(role: str, module: Path) -> str:
    """The protocol of a module: of MCXStaleTail.tla it is X, if there is an X.tla and no XStaleTail.tla."""
    name = module.stem.removeprefix(role)
    beginnings = (name[:length] for length in range(len(name), 0, -1))
    return next((beginning for beginning in beginnings if (module.parent / f"{beginning}.tla").is_file()), name)


def listed_properties(lines: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names below INVARIANT(S) and PROPERTY/PROPERTIES."""
    text = re.sub(r"\(\*.*?\*\)", " ", re.sub(r"\\\*.*", " ", "\n".join(lines)), flags=re.DOTALL)
    found: dict[str, list[str]] = {"INVARIANT": [], "PROPERTY": []}
    current: list[str] | None = None
    for word in text.split():
        if word in CFG_KEYWORDS:
            current = found.get({"INVARIANTS": "INVARIANT", "PROPERTIES": "PROPERTY"}.get(word, word))
        elif current is not None:
            current.append(word)
    return tuple(found["INVARIANT"]), tuple(found["PROPERTY"])
