"""Find a Java runtime for TLC and Spark: by JAVA_HOME, then by PATH, then where Debian puts it.

``python -m refmq.tools.jdk`` prints the path of the ``java`` it found, and installs one first where it may.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from refmq.errors import MissingTool

JAVA_MAJOR_MIN = 17  # Spark 4 and the RocketMQ that conformance runs both ask for it
DEBIAN_PACKAGE = "openjdk-17-jre-headless"
DEBIAN_HOMES = Path("/usr/lib/jvm")

UPDATE = ["apt-get", "update", "-q"]
INSTALL = ["apt-get", "install", "-q", "-y", "--no-install-recommends", DEBIAN_PACKAGE]

VERSION_TIMEOUT_S = 60  # a cold JVM on a busy machine takes seconds, never a minute
INSTALL_TIMEOUT_S = 900

REMEDY = (
    f"Install a JDK {JAVA_MAJOR_MIN} or later (Debian: `apt-get install {DEBIAN_PACKAGE}`) "
    "and put its java on PATH or set JAVA_HOME."
)


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime that was asked for its version."""

    path: Path
    version: str
    major: int

    @property
    def home(self) -> Path:
        """The JAVA_HOME for programs that need it set."""
        return self.path.resolve().parent.parent


def find_java(environ: Mapping[str, str] = os.environ, homes: Path = DEBIAN_HOMES) -> Java | None:
    """The first Java runtime that is new enough, or None."""
    for path in candidates(environ, homes):
        java = ask_version(path)
        if java is not None and java.major >= JAVA_MAJOR_MIN:
            return java
    return None


def require_java() -> Java:
    """The Java runtime to use; raises ``MissingTool`` with one line on how to get one."""
    java = find_java()
    if java is None:
        raise MissingTool(f"A Java runtime of version {JAVA_MAJOR_MIN} or later", REMEDY)
    return java


def ensure_java() -> Java:
    """As ``require_java``, after installing Debian's package where we are root and have apt-get."""
    java = find_java()
    if java is None and can_install():
        install()
    return require_java() if java is None else java


def candidates(environ: Mapping[str, str], homes: Path) -> Iterator[Path]:
    """Where a java may be, best candidate first. Each exists, but none has been run yet."""
    home = environ.get("JAVA_HOME")
    if home:
        yield from existing(Path(home) / "bin" / "java")
    found = shutil.which("java", path=environ.get("PATH", ""))
    if found is not None:
        yield Path(found)
    if homes.is_dir():
        for folder in sorted(homes.iterdir(), reverse=True):
            yield from existing(folder / "bin" / "java")


def existing(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path


def ask_version(path: Path) -> Java | None:
    """What ``java -version`` reports, or None if it cannot be understood."""
    try:
        result = subprocess.run(
            [path, "-version"], capture_output=True, text=True, timeout=VERSION_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    version = parse_version(result.stderr + result.stdout)
    if version is None:
        return None
    return Java(path, *version)


def parse_version(text: str) -> tuple[str, int] | None:
    """The version and its major number from the output of ``java -version``; 1.8 and its like count as 8."""
    found = re.search(r'version "((?:1\.)?(\d+)[^"]*)"', text)
    return (found[1], int(found[2])) if found else None


def can_install() -> bool:
    """Whether we may install a Debian package."""
    return hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get") is not None


def install() -> None:
    """Install Debian's package. A failure is reported on stderr; the caller looks for java again anyway."""
    print(f"refmq: no Java runtime found, installing {DEBIAN_PACKAGE}", file=sys.stderr)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (UPDATE, INSTALL):
        try:
            # stdout carries our answer (the path), so the installer's output goes to stderr.
            subprocess.run(command, env=environment, stdout=sys.stderr, timeout=INSTALL_TIMEOUT_S, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            # Continuing is safe: `apt-get update` may fail for one source of many, and the caller checks again
            # whether there is a java.
            print(f"refmq: {' '.join(command)} did not succeed: {error}", file=sys.stderr)


def main() -> int:
    """Print the path of java, or one line on how to get one."""
    try:
        print(ensure_java().path)
    except MissingTool as error:
        print(f"refmq: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
