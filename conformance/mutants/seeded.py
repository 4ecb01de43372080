"""Mistakes by hand: bugs that real stores have had, and others that are as easy to make, seeded in the reference.

`NOT_OURS` says which bugs of the store cannot exist in this design, and why.
"""

from __future__ import annotations

from typing import Final

from conformance.mutants.mistake import Seeded
from conformance.mutants.seeded_bugs import SEEDED_BUGS
from conformance.mutants.seeded_searches import SEEDED_SEARCHES
from conformance.mutants.seeded_slips import SEEDED_SLIPS

__all__ = ["NOT_OURS", "SEEDED", "Seeded"]

SEEDED: Final = (*SEEDED_BUGS, *SEEDED_SLIPS, *SEEDED_SEARCHES)

NOT_OURS: Final = {
    "B11": "Multi-dispatch (LMQ) is not supported.",
    "B14": "There is no choice of locks to change while one is held.",
    "B18": "There is no confirm offset; a slave's position is decided by the broker's replication.",
    "B27": "A slave writes whole records only: there is nothing above a cut when it becomes the master.",
    "B28": "There is one recovery, and it dispatches what the checkpoint does not cover; see dispatch-from-the-end.",
    "B43": "The cursor of a delay level belongs to the broker, not to the store.",
    "B45": "The same.",
    "B46": "The same.",
    "B47": "The same.",
    "B50": "The same.",
    "B52": "There are no timer messages, and a record is read in its own length.",
    "B81": "The second look at a tag is the client's.",
    "B85": "An index file that was not durable is rebuilt from where the checkpoint says; see index-not-flushed.",
    "B111": "Multi-dispatch (LMQ) is not supported, and every topic is checked; see topic-is-a-path.",
}
"""Bugs of the store, delay and queries that cannot exist here, and why."""
