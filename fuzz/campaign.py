"""The loop: seeds are damaged and fed to targets, in turns, until the time is over or something breaks."""

from __future__ import annotations

import hashlib
import random
import resource
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Final

from fuzz import store_target as _store_target  # noqa: F401  # enters its target
from fuzz.mutate import damaged, shrunk
from fuzz.seeds import FOUND, seeds_of
from fuzz.targets import MEMORY_BYTES_MAX, SECONDS_MAX, TARGETS

TURN: Final = 200
"""Inputs of one target before the next one has its turn."""


class TooSlow(BaseException):
    """A target took longer than it may."""


@dataclass(frozen=True, slots=True)
class Found:
    """An input that breaks a target, as short as we could make it."""

    target: str
    data: bytes
    what: str


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def outcome(name: str, data: bytes) -> str | None:
    """What is wrong with the answer of a target to an input; None when nothing is."""
    signal.setitimer(signal.ITIMER_REAL, SECONDS_MAX)
    try:
        TARGETS[name](data)
    except TooSlow:
        return f"it takes longer than {SECONDS_MAX:g} s"
    except MemoryError:
        return f"it takes more than {MEMORY_BYTES_MAX} bytes"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {error}"[:300]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return None


def guard() -> None:
    """Bounds time and memory of this process."""
    signal.signal(signal.SIGALRM, _too_slow)
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, hard))


def run(
    names: list[str],
    *,
    minutes: float,
    seed: int,
    inputs_max: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> tuple[Found | None, Counter[str]]:
    """Fuzzes until the time is over, `inputs_max` per target are fed, or something breaks."""
    source = random.Random(seed)
    seeds = {name: seeds_of(name) for name in names}
    fed: Counter[str] = Counter()
    begin = shown = time.monotonic()
    for name in names:
        for data in seeds[name]:
            if (what := outcome(name, data)) is not None:
                return Found(name, data, what), fed
    while (now := time.monotonic()) < begin + minutes * 60:
        if now - shown > 5:
            shown = now
            say(f"{fed.total()} inputs, nothing broken")
        for name in names:
            for _ in range(TURN if inputs_max is None else min(TURN, inputs_max - fed[name])):
                data = damaged(source, seeds[name])
                fed[name] += 1
                if (what := outcome(name, data)) is not None:
                    say(f"{name}: {what}; shrinking")
                    return _shrunk(name, data, what), fed
                if time.monotonic() > begin + minutes * 60:
                    return None, fed
        if inputs_max is not None and all(fed[name] >= inputs_max for name in names):
            break
    return None, fed


def _shrunk(name: str, data: bytes, what: str) -> Found:
    kind = what.split(":")[0]

    def breaks(candidate: bytes) -> bool:
        answer = outcome(name, candidate)
        return answer is not None and answer.split(":")[0] == kind

    small = shrunk(data, breaks) if "longer" not in what else data
    return Found(name, small, outcome(name, small) or what)


def save(found: Found, folder: Path = FOUND) -> Path:
    """Keeps an input under its target; the content decides its name."""
    path = folder / found.target / f"{hashlib.sha256(found.data).hexdigest()[:12]}.bin"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(found.data)
    return path
