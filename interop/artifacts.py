"""Jars of the real RocketMQ, fetched by Maven coordinates, and our own small Java programs compiled against them.

Everything lands in interop/target, which git ignores. A class path is fetched once for each content of its profile in
pom.xml and a program compiled once for each content of its source, so a second run starts at once and needs no network.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

from refmq.errors import MissingTool, RefmqError

HERE = Path(__file__).parent
TARGET = HERE / "target"
POM = HERE / "pom.xml"
JAVA_SOURCES = HERE / "java"
UPSTREAM_SOURCES = HERE / "upstream"

SERVERS = {"4.9.7": "servers-4.9.7", "5.3.3": "servers-5.3.3"}
CLIENTS = {"4.9.8": "clients-4.9.8", "5.3.3": "clients-5.3.3"}
UPSTREAM_TESTS = "tests-4.9.7"

MAVEN_TIMEOUT_S = 600
COMPILE_TIMEOUT_S = 120


def require_tools() -> None:
    """Raise ``MissingTool`` with one line unless java, javac and mvn can be found."""
    for tool, remedy in (
        ("java", "Install a JDK, 11 or later (on Debian: openjdk-17-jdk-headless)."),
        ("javac", "A Java runtime alone is not enough: install a JDK (on Debian: openjdk-17-jdk-headless)."),
        ("mvn", "Install Maven 3 (on Debian: maven)."),
    ):
        if shutil.which(tool) is None:
            raise MissingTool(tool, remedy)


def class_path(profile: str) -> str:
    """The class path of one profile of pom.xml, fetched if need be."""
    require_tools()
    # A folder for each content: what another run is using is not taken away from it.
    folder = TARGET / f"{profile}-{profile_digest(profile)[:12]}"
    stamp = folder / ".fetched"
    if not stamp.exists():
        shutil.rmtree(folder, ignore_errors=True)
        command = ["mvn", "-q", "-B", "-f", str(POM), "-P", profile, "dependency:copy-dependencies"]
        run_tool([*command, f"-DoutputDirectory={folder}"], MAVEN_TIMEOUT_S, f"Maven could not fetch {profile}")
        stamp.touch()
    return f"{folder}/*"


def profile_digest(profile: str) -> str:
    """A digest of what pom.xml says about one profile: its own part, and what all of them share."""
    pom = ET.parse(POM).getroot()
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    mine = next((each for each in pom.iterfind("m:profiles/m:profile", space) if each[0].text == profile), None)
    shared = pom.find("m:build", space)
    assert mine is not None and shared is not None, f"pom.xml has no profile {profile}"
    return hashlib.sha256(ET.tostring(mine) + ET.tostring(shared)).hexdigest()


def programs(version: str) -> str:
    """The folder with our Java programs compiled against the clients of ``version``."""
    return compiled(JAVA_SOURCES, version, class_path(CLIENTS[version]))


def upstream_tests() -> str:
    """The class path of upstream's integration tests, with what stands in for their start of servers before them."""
    libraries = class_path(UPSTREAM_TESTS)
    return f"{compiled(UPSTREAM_SOURCES, UPSTREAM_TESTS, libraries)}:{libraries}"


def compiled(folder: Path, name: str, libraries: str) -> str:
    """Where the classes of a folder's sources are, compiled against ``libraries`` if need be."""
    sources = sorted(folder.rglob("*.java"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources) + libraries.encode()).hexdigest()
    classes = TARGET / f"classes-{name}-{digest[:12]}"
    stamp = classes / ".compiled"
    if not stamp.exists():
        shutil.rmtree(classes, ignore_errors=True)
        classes.mkdir(parents=True)
        command = ["javac", "-nowarn", "-encoding", "UTF-8", "-cp", libraries, "-d", str(classes), *map(str, sources)]
        run_tool(command, COMPILE_TIMEOUT_S, f"javac could not compile interop/{folder.name} against {name}")
        stamp.touch()
    return str(classes)


def run_tool(command: list[str], timeout_s: int, complaint: str) -> None:
    """Run a build tool to its end; raise one line with the last thing that it said if it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise RefmqError(f"{complaint}: no end after {timeout_s} s") from None
    if done.returncode != 0:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise RefmqError(f"{complaint}: {said[0] if said else f'exit code {done.returncode}'}")
