"""Toy histories."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Setting:
    """Nothing to choose."""

    size: int = 1


@dataclass(frozen=True, slots=True)
class History:
    """A number decides what becomes of it."""

    number: int = 0
    setting: Setting = Setting()
    steps: tuple[Any, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def history(seed: int, steps: int) -> History:
    return History(seed)
