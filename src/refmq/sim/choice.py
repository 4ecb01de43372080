"""Where the simulated world's decisions come from.

A fault never calls a random number generator: it asks a `Choose` for a number below `options`. The
same faults can then be driven by a seed, by Hypothesis (which shrinks the numbers) or by the list
that a saved history holds. 0 is always the mildest outcome, so a list that ends early, or that was
shrunk to zeros, means "nothing special happened".
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol


class Choose(Protocol):
    """A source of decisions."""

    def __call__(self, options: int, /) -> int:
        """A number in [0, options); 0 is the mildest."""
        ...


def mildest(options: int, /) -> int:
    """Always 0: the world does its best."""
    assert options > 0
    return 0


def harshest(options: int, /) -> int:
    """Always the last option: whatever can be lost is lost."""
    assert options > 0
    return options - 1


def seeded(seed: int) -> Choose:
    """Decisions from a seed: the same seed gives the same decisions."""
    source = random.Random(seed)

    def choose(options: int, /) -> int:
        assert options > 0
        return source.randrange(options)

    return choose


def scripted(choices: Sequence[int], then: Choose = mildest) -> Choose:
    """Decisions from a list, and from `then` when the list has ended.

    A number that is too large for the options at hand is taken modulo them, so every list of
    natural numbers is a valid script and Hypothesis can shrink it freely.
    """
    position = 0

    def choose(options: int, /) -> int:
        nonlocal position
        assert options > 0
        if position >= len(choices):
            return then(options)
        position += 1
        return choices[position - 1] % options

    return choose
