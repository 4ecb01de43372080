"""`python -m conformance.mutants.native_score`: how many mutants of the C sources are found, and by whom.

A mutant is looked for by histories and the comparison of both engines, which is what the promise is about; then by the
tests written in C, by those of the extension in Python, and by these once more under AddressSanitizer and
UndefinedBehaviorSanitizer. Each trial is a process of its own with a build of its own, made with assertions on.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import click

from conformance.mutants.native_mechanical import FOLDERS, SOURCES, NativeMutant, every_mutant
from refmq.errors import MissingTool

ROOT: Final = SOURCES.parent.parent
C_TESTS: Final = ROOT / "tests/refmq_fast"
OPTIONS: Final = ("-std=c11", "-O1", "-fPIC", "-w", f"-I{SOURCES}", f"-I{sysconfig.get_path('include')}")
SANITIZED: Final = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-DRMQ_WITHOUT_SSE2")
C_TEST_SECONDS: Final = 60
BUSY: Final = 10
"""How much longer than on an idle machine a trial may take."""

WIRE: Final = frozenset(
    {"answer", "command", "decimal", "frame", "header_binary", "header_json", "json_text", "message_list", "text"}
)
"""What of core/ histories of clusters run through; histories of stores run through the rest."""


class Workshop:
    """Objects of the sound sources, and builds with one mutant each."""

    def __init__(self, folder: Path, *options: str) -> None:
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if compiler is None:
            raise MissingTool("a C compiler", "Install gcc or clang.")
        self._compiler = compiler
        self._folder = folder
        self._options = (*OPTIONS, *options)
        folder.mkdir(exist_ok=True)
        self._objects = {self._key(path): self._compile(path) for path in sorted(SOURCES.glob("*/*.c"))}
        self._tests = {path.stem: self._compile(path) for path in sorted(C_TESTS.glob("*_test.c"))}

    @staticmethod
    def _key(path: Path) -> str:
        return str(path.relative_to(SOURCES))

    def _compile(self, source: Path) -> Path:
        target = self._folder / f"{source.parent.name}-{source.stem}.o"
        self._run("-c", str(source), "-o", str(target))
        return target

    def _run(self, *arguments: str) -> None:
        subprocess.run([self._compiler, *self._options, *arguments], check=True, capture_output=True, timeout=300)

    def objects_with(self, mutant: NativeMutant) -> dict[str, Path] | None:
        """All objects, one of them changed; None if it does not compile, or compiles to the same."""
        sound = SOURCES / mutant.path
        source = self._folder / "mutant.c"
        source.write_text(f'#line 1 "{sound}"\n' + mutant.applied(sound.read_text()))
        target = self._folder / "mutant.o"
        try:
            self._run(f"-I{sound.parent}", "-c", str(source), "-o", str(target))
        except subprocess.CalledProcessError:
            return None
        return {**self._objects, mutant.path: target}

    def extension(self, objects: dict[str, Path]) -> Path:
        library = self._folder / "_native.so"
        self._run("-shared", *map(str, objects.values()), "-o", str(library))
        return library

    def failing_c_test(self, objects: dict[str, Path]) -> str:
        """The first of the tests in C that fails or does not end."""
        plain = [str(path) for name, path in objects.items() if not name.startswith("bind/")]
        program = self._folder / "program"
        for name, test in self._tests.items():
            self._run(str(test), *plain, "-lpthread", "-o", str(program))
            try:
                done = subprocess.run([program], capture_output=True, check=False, timeout=C_TEST_SECONDS)
            except subprocess.TimeoutExpired:
                return name
            if done.returncode:
                return name
        return ""

    def runtime(self) -> str:
        """The library of the sanitizers, which has to be loaded before the interpreter's own; "" if there is none."""
        command = [self._compiler, "-print-file-name=libasan.so"]
        found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()
        return found if Path(found).is_absolute() else ""


def in_a_process(library: Path, kind: str, seconds: float, runtime: str = "") -> str:
    """What `native_trial` finds. A process that dies or does not end has found something."""
    preload = {"LD_PRELOAD": runtime, "ASAN_OPTIONS": "detect_leaks=0"} if runtime else {}
    command = [sys.executable, "-m", "conformance.mutants.native_trial", str(library)]
    command += ["--kind", kind, "--seconds", str(seconds), "--more-seconds", "0"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=seconds * BUSY + 300, cwd=ROOT,
            env={**os.environ, **preload},
        )  # fmt: skip
        answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return "it does not end"
    except (IndexError, ValueError):
        return "the process died"
    return str(answer["by"]) or ("the engines differ" if answer["differs_after"] else "")


def histories_of(mutant: NativeMutant) -> str:
    folder, _, name = mutant.path.partition("/")
    if folder == "core":
        return "cluster" if name.removesuffix(".c") in WIRE else "store"
    return {"store": "store", "plane": "cluster", "shell": "shell"}[folder]


def found_by(workshop: Workshop, sanitized: Workshop, mutant: NativeMutant, seconds: float) -> tuple[str, str] | None:
    """Who finds it and what it says, "" for nobody; None if it is no mutant."""
    objects = workshop.objects_with(mutant)
    if objects is None:
        return None
    library = workshop.extension(objects)
    what = in_a_process(library, histories_of(mutant), seconds)
    if what:
        return ("threads" if histories_of(mutant) == "shell" else "histories"), what
    what = workshop.failing_c_test(objects)
    if what:
        return "tests", what
    what = in_a_process(library, "unit", seconds)
    if what:
        return "tests", what
    objects = sanitized.objects_with(mutant)
    if objects is None or not sanitized.runtime():
        return "", ""
    what = sanitized.failing_c_test(objects) or in_a_process(
        sanitized.extension(objects), "unit", seconds, sanitized.runtime()
    )
    return ("sanitizers", what) if what else ("", "")


@click.command(help=__doc__)
@click.argument("folders", nargs=-1, type=click.Choice(FOLDERS))
@click.option("--sample", default=15, show_default=True, help="Mutants of each folder.")
@click.option("--seconds", default=20.0, show_default=True, help="How long the histories may look for each.")
@click.option("--seed", default=0, show_default=True, help="Chooses the sample.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Add one JSON line per mutant here; those there are not tried again."
)
def command(folders: tuple[str, ...], sample: int, seconds: float, seed: int, out: Path | None) -> None:
    tried = _tried(out)
    with TemporaryDirectory() as name:
        workshops = Workshop(Path(name) / "plain"), Workshop(Path(name) / "sanitized", *SANITIZED)
        for folder in folders or FOLDERS:
            _score(workshops, folder, sample, seconds, seed, tried, out)


def _tried(out: Path | None) -> dict[str, list[str] | None]:
    if out is None or not out.exists():
        return {}
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    return {line["mutant"]: line["found"] for line in lines}


def _score(
    workshops: tuple[Workshop, Workshop], folder: str, sample: int, seconds: float, seed: int,
    tried: dict[str, list[str] | None], out: Path | None,
) -> None:  # fmt: skip
    every = list(every_mutant((folder,)))
    random.Random(seed).shuffle(every)
    counts: Counter[str] = Counter()
    for mutant in every:
        if counts.total() == sample:
            break
        key = f"{mutant.path}:{mutant.line}:{mutant.start}:{mutant.instead}"
        if key not in tried:
            found = found_by(*workshops, mutant, seconds)
            tried[key] = None if found is None else list(found)
            if out is not None:
                with out.open("a") as lines:
                    lines.write(json.dumps({"mutant": key, "text": mutant.text, "found": tried[key]}) + "\n")
        outcome = tried[key]
        if outcome is None:
            continue
        counts[outcome[0]] += 1
        if not outcome[0]:
            click.echo(f"survives  {mutant.path}:{mutant.line:<4} {mutant.rule:9} {mutant.text}  =>  {mutant.instead}")
    parts = ", ".join(
        f"{counts[who]} by {who}" for who in ("histories", "threads", "tests", "sanitizers") if counts[who]
    )
    click.echo(f"{folder:6} {counts.total() - counts['']} of {counts.total()} found ({parts}), of {len(every)}")


if __name__ == "__main__":
    command()
