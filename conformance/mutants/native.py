"""Mistakes in the C store, the C plane and its shell: builds with one each, and what finds it.

They stand in src/refmq_fast/{store,plane,shell}/mistakes.h, each at a place of the sources that `-DRMQ_MISTAKE=n`
makes wrong. A build is an extension of its own, which only the process of its trial loads. Mistakes of store and plane
are looked for by histories; those of the shell, which histories do not reach, by the tests of its threads, and those of
access control by attacks.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from refmq.errors import MissingTool

ROOT: Final = Path(__file__).parent.parent.parent
SOURCES: Final = ROOT / "src/refmq_fast"
KINDS: Final = {"store": "store", "plane": "cluster", "shell": "shell"}
"""The folders, and what looks for the mistakes in each."""
HEADERS: Final = tuple(SOURCES / folder / "mistakes.h" for folder in KINDS)
FIRST_OF_PLANE: Final = 101
FIRST_OF_SHELL: Final = 201
TRIAL_SECONDS_MAX: Final = 600

_DEFINITION: Final = re.compile(r"#define RMQ_MISTAKE_(\w+) (\d+)\s+/\* (.*) \*/")


@dataclass(frozen=True, slots=True)
class NativeMistake:
    """One of them."""

    name: str
    number: int
    text: str

    @property
    def kind(self) -> str:
        """What looks for it."""
        return "access" if self.name.startswith("access_") else KINDS[folder_of(self.number)]


def folder_of(number: int) -> str:
    """The folder of the sources that a mistake is in."""
    return "shell" if number >= FIRST_OF_SHELL else "plane" if number >= FIRST_OF_PLANE else "store"


def native_mistakes() -> tuple[NativeMistake, ...]:
    """All of them, in the order of their numbers."""
    found = [
        NativeMistake(match[1].lower(), int(match[2]), match[3])
        for header in HEADERS
        for match in _DEFINITION.finditer(header.read_text())
    ]
    return tuple(sorted(found, key=lambda mistake: mistake.number))


def build(mistake: int, folder: Path) -> Path:
    """The extension with a mistake (0: with none). The parts without mistakes are compiled once for all of them."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise MissingTool("a C compiler", "Install gcc or clang.")
    options = ["-std=c11", "-O0", "-fPIC", f"-I{SOURCES}", f"-I{sysconfig.get_path('include')}"]
    objects = []
    for source in sorted(SOURCES.glob("*/*.c")):
        is_changed = mistake > 0 and source.parent.name == folder_of(mistake)
        name = f"{source.parent.name}-{source.stem}.o"
        target = folder / (f"{mistake}-{name}" if is_changed else name)
        objects.append(str(target))
        if is_changed or not target.exists():
            defined = [f"-DRMQ_MISTAKE={mistake}"] if is_changed else []
            _run([compiler, *options, *defined, "-c", str(source), "-o", str(target)])
    library = folder / f"{mistake}" / "_native.so"
    library.parent.mkdir(exist_ok=True)
    _run([compiler, "-shared", *objects, "-o", str(library)])
    return library


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TRIAL_SECONDS_MAX)
    assert done.returncode == 0, done.stderr


def try_native(library: Path, seconds: float, kind: str = "store", more_seconds: float | None = None) -> dict[str, Any]:
    """Which promise a build breaks, after how many histories; and after how many the engines differ.

    Once a promise is broken, the engines of a store are compared for `more_seconds` at most (None: to the end).
    """
    command = [sys.executable, "-m", "conformance.mutants.native_trial", str(library), "--kind", kind]
    command += ["--seconds", str(seconds), "--more-seconds", str(seconds if more_seconds is None else more_seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TRIAL_SECONDS_MAX, cwd=ROOT)
    try:
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
        return {"by": f"UnexpectedError: the process died: {last}", "tried": 0, "differs_after": 0}
    return answer


def native_line(mistake: NativeMistake, answer: dict[str, Any]) -> str:
    by = str(answer["by"]).partition(":")[0] or ("no promise" if answer["differs_after"] else "SURVIVES")
    differs = answer["differs_after"]
    other = f"differs after {differs}" if differs else "no difference"
    return f"C{mistake.number:<6} {mistake.name:20} {by:22} {answer['tried']:5} histories, {other:18} {mistake.text}"
