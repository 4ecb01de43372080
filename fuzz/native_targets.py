"""libFuzzer targets for what is C: each `fuzz/native/NAME_fuzz.c` is built with clang and run on its own seeds.

libFuzzer sees which branches an input takes and keeps what reaches new ones, under AddressSanitizer and
UndefinedBehaviorSanitizer. The corpus grows in build/fuzz/corpus; what breaks stays in build/fuzz/found with its
stack on the screen.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fuzz.seeds import ROOT, seeds_of
from refmq.errors import CheckFound, MissingTool, UsageError

SOURCES: Final = Path(__file__).parent / "native"
BUILD: Final = ROOT / "build" / "fuzz"
INPUT_BYTES_MAX: Final = 4096
SECONDS_MAX: Final = 5
"""For one input."""
BUILD_SECONDS_MAX: Final = 300

OF_THE_PLANE: Final = ("buffer", "conn", "fields")
"""What of it reads bytes."""

SEEDS: Final = {
    "frame": "frame",
    "header_json": "json_header",
    "header_binary": "binary_header",
    "conn": "frame",
    "record": "record",
    "batch": "batch",
    "message_list": "record",
    "scan": "record",
    "log_units": "record",
}
"""Target -> the Python target whose seeds it takes; without a row it begins with nothing."""


def names() -> list[str]:
    """Every target that has a source."""
    return sorted(path.name.removesuffix("_fuzz.c") for path in SOURCES.glob("*_fuzz.c"))


def find_clang() -> str:
    """clang with libFuzzer, or `MissingTool` with what to do."""
    clang = shutil.which("clang")
    if clang is None:
        raise MissingTool("clang", "It fuzzes what is C (Debian: apt install clang).")
    return clang


@dataclass(frozen=True, slots=True)
class Built:
    """One target, ready to run."""

    name: str
    program: Path
    corpus: Path


def build(name: str, clang: str, *options: str) -> Built:
    """Compiles a target with all of the C that it may need, and writes its seeds down."""
    folder = BUILD / name
    corpus = BUILD / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    corpus.mkdir(parents=True, exist_ok=True)
    fast = ROOT / "src" / "refmq_fast"
    below = [*sorted((fast / "core").glob("*.c")), *(fast / "plane" / f"{part}.c" for part in OF_THE_PLANE)]
    sources = [SOURCES / f"{name}_fuzz.c", *below]
    program = folder / "target"
    sanitizers = "-fsanitize=fuzzer,address,undefined"
    command = [clang, "-std=c11", "-g", "-O1", "-Wall", "-Wextra", sanitizers, "-fno-sanitize-recover=all", *options]
    done = subprocess.run(
        [*command, f"-I{fast}", f"-I{SOURCES}", *map(str, sources), "-o", str(program)],
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS_MAX,
        check=False,
    )
    if done.returncode != 0:
        raise CheckFound(f"{name} cannot be built:\n{done.stderr[-4000:]}")
    for number, seed in enumerate(seeds_of(SEEDS[name]) if name in SEEDS else []):
        (corpus / f"seed-{number:03}").write_bytes(seed[:INPUT_BYTES_MAX])
    return Built(name, program, corpus)


def run(built: Built, seconds: float, seed: int) -> tuple[int, str]:
    """How many inputs a target took in so many seconds, and what it printed. `CheckFound` when one broke it."""
    found = BUILD / "found"
    found.mkdir(parents=True, exist_ok=True)
    command = [
        str(built.program),
        f"-max_total_time={max(1, round(seconds))}",
        f"-timeout={SECONDS_MAX}",
        f"-max_len={INPUT_BYTES_MAX}",
        f"-seed={seed + 1}",  # 0 means any
        f"-artifact_prefix={found}/{built.name}-",
        "-print_final_stats=1",
        "-verbosity=0",
        str(built.corpus),
    ]
    # libFuzzer ends by itself; the limit is for one that does not.
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 120, check=False)
    if done.returncode != 0:
        raise CheckFound(f"{built.name} broke; the input is in {found}.\n{done.stderr[-6000:]}")
    stats = dict(line.removeprefix("stat::").split(":", 1) for line in done.stderr.splitlines() if "stat::" in line)
    return int(stats.get("number_of_executed_units", "0")), done.stderr


def run_all(chosen: list[str], *, minutes: float, seed: int, say: Callable[[str], None]) -> None:
    """Every target in turn, each for its share of the time."""
    unknown = [name for name in chosen if name not in names()]
    if unknown:
        raise UsageError(f"There is no C target {unknown[0]}; there are {', '.join(names())}.")
    clang = find_clang()
    wanted = chosen or names()
    for name in wanted:
        inputs, _ = run(build(name, clang), minutes * 60 / len(wanted), seed)
        say(f"{name:14} {inputs:9} inputs")
