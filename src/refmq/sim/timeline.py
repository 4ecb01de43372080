"""What happened in a run, in order: a bounded list of entries and a digest of all of them.

The digest is over every entry, kept or not, so two runs with the same digest went the same way.
"""

from __future__ import annotations

import hashlib
from collections import deque
from dataclasses import dataclass
from typing import Final

ENTRIES_KEPT_MAX: Final = 50_000
"""A failure is explained by the end of a run; older entries are only in the digest."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that happened at one node."""

    at_s: float
    node: str
    what: str
    details: tuple[object, ...]
    """Values that never change: their text is asked for later."""

    def to_bytes(self) -> bytes:
        return repr((self.at_s, self.node, self.what, self.details)).encode()

    def __str__(self) -> str:
        details = " ".join(str(detail) for detail in self.details)
        return f"{self.at_s:12.6f}  {self.node:<12} {self.what} {details}".rstrip()


class Timeline:
    """The entries of one run."""

    def __init__(self) -> None:
        self.entries: deque[Entry] = deque(maxlen=ENTRIES_KEPT_MAX)
        self.count = 0
        self._digest = hashlib.blake2b(digest_size=16)

    def note(self, at_s: float, node: str, what: str, *details: object) -> None:
        if len(self.entries) == ENTRIES_KEPT_MAX:
            self._digest.update(self.entries[0].to_bytes())  # it goes now
        self.count += 1
        self.entries.append(Entry(at_s, node, what, details))

    @property
    def digest(self) -> str:
        """Few ask for it, so what is kept is added only now."""
        digest = self._digest.copy()
        for entry in self.entries:
            digest.update(entry.to_bytes())
        return digest.hexdigest()

    def of(self, node: str) -> list[Entry]:
        """The entries of one node, over all its lives."""
        return [entry for entry in self.entries if entry.node.partition("#")[0] == node]

    def per_node(self) -> str:
        """The time line of each node, for people to read."""
        names = sorted({entry.node.partition("#")[0] for entry in self.entries})
        return "\n".join(f"--- {name}\n" + "\n".join(map(str, self.of(name))) for name in names)
