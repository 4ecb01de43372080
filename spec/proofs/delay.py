"""Delay levels and retries: levels stay in the table, each has its own queue, and no message is early.

A message that is sent back for the n-th time waits at level 3 + n, at most the highest (`consumer_send_msg_back`,
`redirect`); level l waits in queue l - 1. A delayed message carries the time at which it is due, its store time and the
delay of its level, and is delivered when that time has come (`DelayService`). A time further away than the level waits
can only come from a clock that was set back, and such a message is delivered at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import z3

from spec.proofs.claim import Claim, Number, Obligation, Twin, integers, smaller

FIRST_RETRY_LEVEL: Final = 3


def retry_level(times: Number, level_max: Number) -> Number:
    return smaller(FIRST_RETRY_LEVEL + times, level_max)


def levels_stay_in_the_table(rule: Callable[[Number, Number], Number]) -> Iterable[Obligation]:
    times, later, level_max = integers("times later level_max")
    sizes = (times >= 0, level_max >= 1)
    level = rule(times, level_max)
    yield Obligation("a retry has a level of the table", sizes, z3.And(level >= 1, level <= level_max))
    yield Obligation("its queue is one of the delay topic's", sizes, z3.And(level - 1 >= 0, level - 1 < level_max))
    yield Obligation("a later retry does not wait less", (*sizes, later > times), level <= rule(later, level_max))
    below = z3.And(FIRST_RETRY_LEVEL + later <= level_max, later > times)
    yield Obligation("below the highest level each retry has its own", (*sizes, below), level < rule(later, level_max))
    usual = (times >= 0, level_max == 18)
    yield Obligation("the first retry waits at level 3", (*usual, times == 0), rule(times, level_max) == 3)
    yield Obligation("from the 15th on, retries wait at level 18", (*usual, times >= 15), rule(times, level_max) == 18)


def queue_of(level: Number) -> Number:
    return level - 1


def levels_have_queues(rule: Callable[[Number], Number]) -> Iterable[Obligation]:
    level, other, level_max, queue = integers("level other level_max queue")
    is_level = (level >= 1, level <= level_max)
    yield Obligation("a level's queue exists", is_level, z3.And(rule(level) >= 0, rule(level) < level_max))
    yield Obligation("two levels have two queues", (*is_level, level < other), rule(level) != rule(other))
    is_queue = (queue >= 0, queue < level_max)
    back = queue + 1
    yield Obligation("every queue has a level", is_queue, z3.And(back >= 1, back <= level_max, rule(back) == queue))


def retries_end(is_dead: Callable[[Number, Number], z3.BoolRef]) -> Iterable[Obligation]:
    """Each round adds one to `times`; a message goes to the dead letters when `is_dead`."""
    times, retries_max = integers("times retries_max")
    sizes = (times >= 0, retries_max >= 0)
    retried = z3.Not(is_dead(times, retries_max))
    yield Obligation("what is sent again was retried at most that often", (*sizes, retried), times + 1 <= retries_max)
    left, left_after = retries_max - times, retries_max - (times + 1)
    yield Obligation("each round leaves fewer", (*sizes, retried), z3.And(left > left_after, left_after >= 0))
    yield Obligation("a message that may be retried is", (*sizes, times < retries_max), retried)


@dataclass(frozen=True, slots=True)
class Delivery:
    """When a message is due, and whether the clock is assumed not to have been set back."""

    due: Callable[[Number, Number, Number], Number]
    clock_goes_on: bool = True


def due_ms(wanted: Number, now: Number, delay: Number) -> Number:
    return z3.If(wanted <= now + delay, wanted, now)


def nothing_is_early(rule: Delivery) -> Iterable[Obligation]:
    stored, delay, now = integers("stored delay now")
    times = (stored >= 0, now >= 0, delay >= 0)
    wanted = stored + delay
    due = rule.due(wanted, now, delay)
    clock = (now >= stored,) if rule.clock_goes_on else ()
    yield Obligation("what is delivered has waited", (*times, *clock, due <= now), now >= stored + delay)
    yield Obligation("what has waited is delivered", (*times, now >= wanted), due <= now)
    yield Obligation("whatever the clock did, nothing waits longer than its level", times, due <= now + delay)


CLAIMS: Final = (
    Claim(
        "retry level",
        "a retry waits at level 3 + times, at most the highest, and never less than the one before",
        levels_stay_in_the_table,
        retry_level,
        (
            Twin("the level is not limited", lambda times, level_max: FIRST_RETRY_LEVEL + times),
            Twin("the first retry waits at level 4", lambda times, level_max: smaller(4 + times, level_max)),
            Twin("every retry waits at level 3", lambda times, level_max: smaller(z3.IntVal(3), level_max)),
            Twin("the level begins anew behind the table", lambda times, level_max: (2 + times) % level_max + 1),
        ),
    ),
    Claim(
        "level queue",
        "levels and queues of the delay topic correspond one to one",
        levels_have_queues,
        queue_of,
        (
            Twin("the queue has the number of the level", lambda level: level),
            Twin("the first two levels share a queue", lambda level: z3.If(level > 1, level - 2, 0)),
        ),
    ),
    Claim(
        "retry end",
        "a message is retried exactly as often as allowed, then it is a dead letter",
        retries_end,
        lambda times, retries_max: times >= retries_max,
        (
            Twin("one round more", lambda times, retries_max: times > retries_max),
            Twin("one round less", lambda times, retries_max: times + 1 >= retries_max),
        ),
    ),
    Claim(
        "never early",
        "a delayed message is delivered when its level's delay has passed, not before",
        nothing_is_early,
        Delivery(due_ms),
        (
            Twin(
                "a message that was just stored counts as one of a clock set back",
                Delivery(lambda wanted, now, delay: z3.If(wanted < now + delay, wanted, now)),
            ),
            Twin("a time that is far away is waited for", Delivery(lambda wanted, now, delay: wanted)),
            Twin("a message is due one millisecond later", Delivery(lambda wanted, now, delay: wanted + 1)),
            Twin("the clock is set back", Delivery(due_ms, clock_goes_on=False)),
        ),
    ),
)
