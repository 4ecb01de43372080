"""The fence around the simulated world: a way out of it is an error that names the place.

While a simulated loop runs, code in its thread may not touch what a seed does not decide: real
clocks and sleeps, sockets, threads, processes, files, the operating system's random numbers and the
`random` module's hidden generator. Three nets, from cheap to complete:

| net     | when    | how                                    | catches                                          |
|---------|---------|----------------------------------------|--------------------------------------------------|
| patches | always  | functions of modules are replaced      | clocks, sleeps and waits, os.urandom, os.stat,   |
|         |         |                                        | random.random, os.getenv, signals                |
| audit   | always  | a `sys.addaudithook` of ours           | sockets, files, directories, subprocesses        |
| profile | strict  | `sys.setprofile` sees every C function | all of the first, however it was imported, and   |
|         |         |                                        | datetime.now, os.getpid, thread starts           |

The third makes a run several times slower, so it is a switch: a test of each cluster uses it.

Some callers have a good reason and are let through: the import system reads modules, `traceback`
reads source lines, `logging` stamps its records (and gets virtual time). Other threads are left
alone: the fence is for the loop's thread only.
"""

from __future__ import annotations

import builtins
import calendar
import datetime as dt
import os
import random
import select
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

__all__ = ["Escape", "Guard"]

CLOCK_READERS: Final = frozenset({"logging"})
"""Top-level packages that may read the clock, and then read the virtual one."""

OUTSIDERS: Final = frozenset({"hypothesis", "_pytest", "pluggy", "coverage", "execnet", "xdist", "cProfile", "pdb"})
"""Tools that surround a run in the same thread; what they do is not part of it."""

FILE_READERS: Final = frozenset({"importlib", "linecache", "tokenize", "traceback", "zipimport", "pkgutil", "inspect"})
"""Packages that read source or byte code, which is the same in every run of one version."""

FRAMES_SEARCHED: Final = 12
"""How far up the stack a permitted reader may be."""

AUDITED: Final = {
    "socket.__new__": "a real socket",
    "socket.getaddrinfo": "the real resolver",
    "socket.gethostname": "the name of the machine",
    "socket.gethostbyname": "the real resolver",
    "open": "a real file",
    "os.listdir": "a real directory",
    "os.scandir": "a real directory",
    "os.mkdir": "a real directory",
    "os.remove": "a real file",
    "os.rename": "a real file",
    "os.truncate": "a real file",
    "subprocess.Popen": "a process",
    "os.system": "a process",
    "os.fork": "a process",
    "os.posix_spawn": "a process",
    "mmap.__new__": "a real mapping",
    "_thread.start_new_thread": "a thread",
    "time.sleep": "a real sleep",
}


class Escape(AssertionError):
    """Simulated code reached for the real world."""

    def __init__(self, what: str, why: str) -> None:
        self.place = _place()
        super().__init__(f"{what} in simulated code at {self.place}: {why}")


def _frames(depth: int) -> list[FrameType]:
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and len(frames) < FRAMES_SEARCHED:
        frames.append(frame)
        frame = frame.f_back
    return frames


def _package(frame: FrameType) -> str:
    name = str(frame.f_globals.get("__name__", ""))
    return "importlib" if name.startswith("importlib") else name.partition(".")[0]


_LIBRARY: Final = os.path.dirname(threading.__file__)  # noqa: PTH120  # pathlib would itself go through the fence


def _is_library(file: str) -> bool:
    return file.startswith((_LIBRARY, "<frozen")) and "site-packages" not in file


def _place() -> str:
    """File, line and function of the innermost frame that is not part of the fence or of the standard library."""
    fallback = "an unknown place"
    for frame in _frames(2):
        code = frame.f_code
        place = f"{code.co_filename}:{frame.f_lineno} ({code.co_qualname})"
        if frame.f_globals.get("__name__") in (__name__, "refmq.sim.loop"):
            continue
        if not _is_library(code.co_filename):
            return place
        fallback = place
    return fallback


def _is_permitted(depth: int) -> bool:
    """Whether a call comes from the tools around a run, or from those that read sources, through whatever of the
    standard library lies between."""
    for frame in _frames(depth + 1):
        package = _package(frame)
        if package in OUTSIDERS or package in FILE_READERS:
            return True
        if not _is_library(frame.f_code.co_filename):
            return False
    return False


class Guard:
    """The fence of one run. `enter` closes it, `leave` opens it again."""

    def __init__(self, *, strict: bool = False) -> None:
        self.strict = strict
        self.escapes: list[Escape] = []
        """Every escape, including those swallowed by a broad `except`."""
        self._patched: list[tuple[Any, str, Any]] = []
        self._profile: Any = None

    def note(self, escape: Escape) -> None:
        self.escapes.append(escape)

    def enter(self, wall_ms: Callable[[], int]) -> None:
        global _active
        assert _active is None, "one simulated loop runs at a time"
        _install_audit_hook()
        thread = threading.get_ident()
        _active = (thread, self)
        for patch in _PATCHES:
            original = getattr(patch.owner, patch.name)
            self._patched.append((patch.owner, patch.name, original))
            setattr(patch.owner, patch.name, self._fenced(original, patch, thread, wall_ms))
        self._patched.append((random.Random, "seed", random.Random.seed))
        random.Random.seed = self._seeded(random.Random.seed, thread)  # type: ignore[method-assign]  # put back on leaving
        if self.strict:
            self._profile = sys.getprofile()
            sys.setprofile(self._seen)

    def leave(self) -> None:
        global _active
        _active = None
        if self.strict:
            sys.setprofile(self._profile)
        while self._patched:
            owner, name, original = self._patched.pop()
            setattr(owner, name, original)

    def refuse(self, what: str, why: str) -> None:
        escape = Escape(what, why)
        self.note(escape)
        raise escape

    def _fenced(self, original: Any, patch: Patch, thread: int, wall_ms: Callable[[], int]) -> Any:
        def fenced(*args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() != thread:
                return original(*args, **kwargs)
            if patch.harmless_from is not None and len(args) >= patch.harmless_from:
                # Simulated machines stand in Greenwich.
                return _IN_GREENWICH.get(original, original)(*args, **kwargs)
            if patch.stamp is not None and _package(sys._getframe(1)) in CLOCK_READERS:
                return patch.stamp(wall_ms())
            if _is_permitted(2):
                return original(*args, **kwargs)
            return self.refuse(patch.what, "a run may depend on nothing but its seed")

        return fenced

    def _seeded(self, original: Any, thread: int) -> Any:
        """`Random()` without a seed asks the operating system for one, in C, where no patch sees it."""

        def seed(generator: random.Random, a: Any = None, version: int = 2) -> None:
            if a is None and threading.get_ident() == thread and _package(sys._getframe(1)) not in OUTSIDERS:
                self.refuse("a random generator without a seed", "a run may depend on nothing but its seed")
            original(generator, a, version)

        return seed

    def _seen(self, frame: FrameType, event: str, argument: Any) -> None:
        """The profile function: called before every call of a C function, however it was imported."""
        if event != "c_call":
            return
        try:
            what = _FORBIDDEN.get(argument)
        except TypeError:  # a bound method of something that has no hash
            return
        if what is None:
            owner = getattr(argument, "__self__", None)
            if owner is _HIDDEN_GENERATOR and argument.__name__ in _GENERATOR_METHODS:
                what = f"random.{argument.__name__}"
            elif owner is dt.datetime and argument.__name__ in ("now", "utcnow", "today"):
                what = f"datetime.{argument.__name__}"
            elif owner is dt.date and argument.__name__ == "today":
                what = "date.today"
            else:
                return
        package = _package(frame)
        if package in OUTSIDERS or package in CLOCK_READERS or frame.f_globals.get("__name__") == __name__:
            return
        if any(_package(above) in FILE_READERS for above in _frames(2)):
            return
        self.refuse(what, "a run may depend on nothing but its seed")


_active: tuple[int, Guard] | None = None
_hooked = False


def _install_audit_hook() -> None:
    """Audit hooks cannot be removed, so there is one, and it looks for the guard that is active."""
    global _hooked
    if not _hooked:
        _hooked = True
        sys.addaudithook(_audit)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if _active is None or event not in AUDITED:
        return
    thread, guard = _active
    if threading.get_ident() != thread:
        return
    packages = {_package(frame) for frame in _frames(2)}
    direct = _package(sys._getframe(1))
    if direct in OUTSIDERS or (event in ("open", "os.listdir", "os.scandir") and packages & FILE_READERS):
        return
    detail = f" {args[0]!r}" if args and isinstance(args[0], str | bytes) else ""
    guard.refuse(f"{AUDITED[event]} ({event}{detail})", "the simulated world has its own")


def _seconds(wall_ms: int) -> float:
    return wall_ms / 1000


def _nanoseconds(wall_ms: int) -> int:
    return wall_ms * 1_000_000


_IN_GREENWICH: Final[dict[Any, Callable[..., Any]]] = {time.localtime: time.gmtime, time.mktime: calendar.timegm}
"""Functions that know the time zone of the machine, and those that do the same without it."""
_GENERATOR_METHODS: Final = frozenset({"random", "getrandbits", "seed", "setstate"})
_HIDDEN_GENERATOR: Final = getattr(random, "_inst", None)

# The name under which threading keeps what Thread.start calls: the second one since CPython 3.13.
_START_THREAD: Final = "_start_new_thread" if hasattr(threading, "_start_new_thread") else "_start_joinable_thread"


@dataclass(frozen=True, slots=True)
class Patch:
    """One function of a module that simulated code may not call."""

    owner: Any
    name: str
    what: str
    stamp: Callable[[int], Any] | None = None
    """What those who may read the clock get instead: made from virtual milliseconds."""
    harmless_from: int | None = None
    """With this many arguments the result depends only on them: a given time is not an escape."""


def _patches(owner: Any, text: str, *names: str) -> list[Patch]:
    """Functions of one module, as far as this Python has them."""
    return [Patch(owner, name, text.format(name)) for name in names if hasattr(owner, name)]


_PATCHES: Final = [
    Patch(time, "time", "time.time", _seconds),
    Patch(time, "time_ns", "time.time_ns", _nanoseconds),
    *_patches(time, "time.{}", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "sleep"),
    *_patches(time, "time.{}", "process_time", "process_time_ns", "thread_time", "thread_time_ns"),
    *_patches(time, "time.{}", "clock_gettime", "clock_gettime_ns"),
    Patch(time, "localtime", "the time zone of the machine", harmless_from=1),
    Patch(time, "mktime", "the time zone of the machine", harmless_from=1),
    Patch(time, "gmtime", "time.gmtime", harmless_from=1),
    Patch(time, "ctime", "time.ctime", harmless_from=1),
    Patch(time, "asctime", "time.asctime", harmless_from=1),
    Patch(time, "strftime", "time.strftime", harmless_from=2),
    *_patches(os, "os.{}", "urandom", "stat", "lstat", "statvfs", "getcwd", "getenv", "cpu_count", "getloadavg"),
    *_patches(random, "os.urandom", "_urandom"),
    *_patches(uuid, "uuid.{}", "uuid1", "getnode"),
    *_patches(random, "random.{}", "random", "randrange", "randint", "choice", "choices", "sample", "shuffle"),
    *_patches(random, "random.{}", "uniform", "getrandbits"),
    *_patches(threading, "a thread", _START_THREAD),
    *_patches(threading.Condition, "a real wait (threading)", "wait"),
    *_patches(select, "a real wait (select.{})", "select", "poll", "epoll"),
    *_patches(signal, "signal.{}", "signal", "alarm", "setitimer"),
    *_patches(builtins, "the terminal ({})", "input"),
]

_FORBIDDEN: Final[dict[Any, str]] = {
    time.time: "time.time",
    time.time_ns: "time.time_ns",
    time.monotonic: "time.monotonic",
    time.monotonic_ns: "time.monotonic_ns",
    time.perf_counter: "time.perf_counter",
    time.perf_counter_ns: "time.perf_counter_ns",
    time.process_time: "time.process_time",
    time.thread_time: "time.thread_time",
    time.clock_gettime: "time.clock_gettime",
    time.sleep: "time.sleep",
    os.urandom: "os.urandom",
    os.getpid: "os.getpid",
    select.select: "a real wait (select.select)",
    getattr(threading, _START_THREAD): "a thread",
}
