"""Promises about what goes over a connection, frame by frame, whoever is at its ends.

Whoever can see the frames judges them: the simulated network shows them to the histories of clusters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from refmq.verify.oracles.base import Finding


class SeenFrame(NamedTuple):
    """A frame that arrived."""

    connection: int
    sender: int
    """Which of its two ends sent it."""
    opaque: int
    is_answer: bool
    wants_answer: bool


def one_answer_per_request(frames: Iterable[SeenFrame]) -> Iterator[Finding]:
    """OneAnswerPerRequest: an answer belongs to a request of the other end that has none yet; a one-way request gets
    none."""
    waiting: Counter[tuple[int, int, int]] = Counter()  # connection, who has to answer is not this end, number
    for number, frame in enumerate(frames):
        if not frame.is_answer:
            waiting[frame.connection, frame.sender, frame.opaque] += frame.wants_answer
            continue
        asked = [key for key in waiting if key[0] == frame.connection and key[1] != frame.sender]
        key = next((key for key in asked if key[2] == frame.opaque and waiting[key]), None)
        if key is None:
            sentence = f"request {frame.opaque} of connection {frame.connection} is answered, and nobody waits for it"
            yield Finding("OneAnswerPerRequest", sentence, number)
        else:
            waiting[key] -= 1
