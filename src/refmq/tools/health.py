"""What ``refmq doctor`` checks: one function per line, each of which says what to do if something is wrong."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import refmq_fast
from refmq.tools import jdk, tlc

PYTHON_MIN = (3, 11)

GIB = 1 << 30
MIB = 1 << 20
# A commit log grows by files of 1 GiB; with less than two of them free a broker will soon stop accepting messages.
FREE_DISK_ADVISED_BYTES = 2 * GIB
FREE_DISK_NEEDED_BYTES = 256 * MIB

# One descriptor for each client and each open store file.
OPEN_FILES_ADVISED = 4096
OPEN_FILES_NEEDED = 256


class State(StrEnum):
    """How a line is doing. Only a problem makes ``refmq doctor`` end with exit code 3."""

    OK = "ok"
    ADVICE = "advice"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class HealthLine:
    """One line of the doctor. ``remedy`` says what to do and is empty exactly when the state is ok."""

    name: str
    state: State
    found: str
    remedy: str = ""

    def __post_init__(self) -> None:
        assert (self.remedy == "") == (self.state is State.OK), self


def examine(store: Path) -> Iterator[HealthLine]:
    """Every line, in the order in which they are shown. ``store`` is where a broker would keep its files."""
    yield python()
    yield extension(refmq_fast.AVAILABLE, refmq_fast.REASON)
    yield engine(refmq_fast.AVAILABLE)
    java = jdk.find_java()
    yield java_runtime(java)
    yield model_checker(tlc.find_tlc_jar(), java)
    yield spark(java)
    yield free_disk(store)
    yield open_files()


def python(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> HealthLine:
    found = f"{platform.python_implementation()} {'.'.join(map(str, version))} at {sys.executable}"
    if version < PYTHON_MIN:
        wanted = ".".join(map(str, PYTHON_MIN))
        return HealthLine("Python", State.PROBLEM, found, f"Install refmq into CPython {wanted} or later.")
    return HealthLine("Python", State.OK, found)


def extension(available: bool, reason: str) -> HealthLine:
    if available:
        how = "carry-less multiplication" if refmq_fast.crc32_is_accelerated() else "tables only"
        return HealthLine("extension", State.OK, f"on ({reason}; CRC-32 by {how})")
    if os.environ.get("REFMQ_PURE") == "1":
        remedy = "Unset REFMQ_PURE to use it."
    elif find_compiler() is None:
        remedy = "Install a C compiler (Debian: `apt-get install gcc libc6-dev`), then install refmq again."
    else:
        remedy = "There is a C compiler now: run `pip install --force-reinstall --no-deps -v .` and read what it says."
    return HealthLine("extension", State.ADVICE, f"off: {reason}; everything works, more slowly", remedy)


def engine(available: bool) -> HealthLine:
    """Who serves messages with `--engine auto`; that there is no C is said in the line of the extension."""
    if available:
        return HealthLine(
            "engine", State.OK, "fast, in C (stores with extension files or the transient pool: reference)"
        )
    return HealthLine("engine", State.OK, "reference, in Python")


def find_compiler() -> str | None:
    """The C compiler that a build would take."""
    return next(filter(None, map(shutil.which, filter(None, (os.environ.get("CC"), "cc", "gcc", "clang")))), None)


def java_runtime(java: jdk.Java | None) -> HealthLine:
    if java is None:
        return HealthLine("JDK", State.ADVICE, "not found; only TLC and Spark need it", jdk.REMEDY)
    return HealthLine("JDK", State.OK, f"{java.version} at {java.path}")


def model_checker(jar: Path | None, java: jdk.Java | None) -> HealthLine:
    if jar is None:
        return HealthLine("TLC", State.ADVICE, "not found; only checking the specifications needs it", tlc.REMEDY)
    if java is None:
        return HealthLine("TLC", State.ADVICE, f"{jar}, which cannot run without a JDK", jdk.REMEDY)
    return HealthLine("TLC", State.OK, str(jar))


def spark(java: jdk.Java | None) -> HealthLine:
    # Importing pyspark takes a second; its metadata does not.
    if importlib.util.find_spec("pyspark") is None:
        remedy = "Run `pip install 'refmq[spark]'`."
        return HealthLine("Spark", State.ADVICE, "not installed; only `refmq verify` on large traces needs it", remedy)
    version = importlib.metadata.version("pyspark")
    if java is None:
        return HealthLine("Spark", State.ADVICE, f"pyspark {version}, which cannot run without a JDK", jdk.REMEDY)
    return HealthLine("Spark", State.OK, f"pyspark {version}")


def free_disk(store: Path, free_bytes: int | None = None) -> HealthLine:
    """Free space where ``store`` is or would be created."""
    store = store.absolute()
    place = next(path for path in (store, *store.parents) if path.exists())
    if free_bytes is None:
        free_bytes = shutil.disk_usage(place).free
    found = f"{free_bytes / GIB:.1f} GiB at {place}"
    if free_bytes >= FREE_DISK_ADVISED_BYTES:
        return HealthLine("free disk", State.OK, found)
    state = State.ADVICE if free_bytes >= FREE_DISK_NEEDED_BYTES else State.PROBLEM
    advised = f"{FREE_DISK_ADVISED_BYTES // GIB} GiB"
    return HealthLine(
        "free disk", state, found, f"Free some space or keep the store elsewhere: a broker wants {advised}."
    )


def open_files(limits: tuple[int, int] | None = None) -> HealthLine:
    """The limit of open files of this process: (soft, hard), where -1 is no limit."""
    if limits is None:
        try:
            import resource
        except ImportError:
            return HealthLine("open files", State.OK, "no limit on this platform")
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = limits
    if soft == -1:
        return HealthLine("open files", State.OK, "unlimited")
    found = f"{soft} (at most {'unlimited' if hard == -1 else hard})"
    if soft >= OPEN_FILES_ADVISED:
        return HealthLine("open files", State.OK, found)
    state = State.ADVICE if soft >= OPEN_FILES_NEEDED else State.PROBLEM
    if hard == -1 or hard >= OPEN_FILES_ADVISED:
        return HealthLine("open files", state, found, f"Run `ulimit -n {OPEN_FILES_ADVISED}` before starting a server.")
    return HealthLine("open files", state, found, f"Ask the administrator for a limit of {OPEN_FILES_ADVISED} or more.")
