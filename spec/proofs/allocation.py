"""AVG, AVG_BY_CIRCLE and MACHINE_ROOM are partitions of the queues, for every number of queues and members.

`queues` = share * members + rest, and member number i of the sorted ids owns a range (AVG) or every `members`-th queue
(AVG_BY_CIRCLE). Proved: every queue has an owner (the proof names it), no queue has two, and two members' shares differ
by at most one. What the strategies need is assumed too: all members see the same sorted lists, and no id is there
twice. A twin shows what happens when an id is: queues that nobody reads. (MACHINE_ROOM is a partition of the queues in
its rooms; those are the queues here.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

import z3

from spec.proofs.claim import (
    Claim,
    Number,
    Obligation,
    Truth,
    Twin,
    integers,
    is_division,
    larger,
    product_is_not_negative,
    smaller,
)

Range = Callable[[Number, Number, Number, Number, Number], tuple[Number, Number]]
"""(queues, members, share, rest, member) -> first queue, number of queues."""


def average_range(
    queues: Number, members: Number, share: Number, rest: Number, member: Number
) -> tuple[Number, Number]:
    """AVG: the first `rest` members own one queue more, and come first."""
    is_larger = z3.And(rest > 0, member < rest)
    size = z3.If(queues <= members, 1, z3.If(is_larger, share + 1, share))
    start = z3.If(is_larger, member * size, member * size + rest)
    return start, larger(smaller(size, queues - start), z3.IntVal(0))


def _start_without_the_rest(
    queues: Number, members: Number, share: Number, rest: Number, member: Number
) -> tuple[Number, Number]:
    start, count = average_range(queues, members, share, rest, member)
    return z3.If(z3.And(rest > 0, member < rest), start, start - rest), count


def _never_one_more(
    queues: Number, members: Number, share: Number, rest: Number, member: Number
) -> tuple[Number, Number]:
    start, _ = average_range(queues, members, share, rest, member)
    return start, larger(smaller(share, queues - start), z3.IntVal(0))


def _first_of_two_equal_ids(
    queues: Number, members: Number, share: Number, rest: Number, member: Number
) -> tuple[Number, Number]:
    """The ids of members 0 and 1 are the same: both believe that they are number 0."""
    return average_range(queues, members, share, rest, z3.If(member == 1, z3.IntVal(0), member))


def _the_last_takes_the_rest(
    queues: Number, members: Number, share: Number, rest: Number, member: Number
) -> tuple[Number, Number]:
    return member * share, z3.If(member == members - 1, share + rest, share)


def average_is_a_partition(rule: Range) -> Iterable[Obligation]:
    queues, members, share, rest, queue = integers("queues members share rest queue")
    sizes = (queues >= 0, members >= 1, share >= 0, is_division(queues, members, share, rest))

    def owned(member: Number) -> Truth:
        start, count = rule(queues, members, share, rest, member)
        return z3.And(member >= 0, member < members, start <= queue, queue < start + count)

    # The owner of a queue: among the larger shares, behind them, or the member of the same number.
    owner, inside = integers("owner inside")
    among_larger = z3.And(queue < rest * (share + 1), is_division(queue, share + 1, owner, inside))
    behind = z3.And(
        queue >= rest * (share + 1), is_division(queue - rest * (share + 1), share, owner - rest, inside), share >= 1
    )
    is_owner = z3.If(queues <= members, owner == queue, z3.Or(among_larger, behind))
    yield Obligation(
        "with more queues than members, nobody is without one",
        (*sizes, queues > members, product_is_not_negative(-share, members)),
        share >= 1,
        is_lemma=True,
    )
    hints: tuple[Truth, ...] = (
        product_is_not_negative(owner - rest, share + 1),
        product_is_not_negative(rest - owner - 1, share + 1),
        product_is_not_negative(owner - members, share),
        product_is_not_negative(members - owner - 1, share),
        product_is_not_negative(rest - owner - 1, share),
        product_is_not_negative(share, members),
        product_is_not_negative(share - 1, members),
        product_is_not_negative(-owner - 1, share + 1),
    )
    yield Obligation("every queue has an owner", (*sizes, queue >= 0, queue < queues, is_owner, *hints), owned(owner))

    one, other = integers("one other")
    hints = (
        product_is_not_negative(other - one - 1, share),
        product_is_not_negative(other - one - 1, share + 1),
        product_is_not_negative(rest - one - 1, share),
        product_is_not_negative(share - 1, members),
    )
    yield Obligation("no queue has two owners", (*sizes, one < other, owned(one), *hints), z3.Not(owned(other)))

    start, count = rule(queues, members, share, rest, one)
    is_member = z3.And(one >= 0, one < members)
    hints = (
        product_is_not_negative(members - one - 1, share),
        product_is_not_negative(rest - one - 1, share),
        product_is_not_negative(share - 1, members),
        product_is_not_negative(one, share),
    )
    yield Obligation(
        "a share is a whole part, or one more",
        (*sizes, is_member, *hints),
        z3.And(share <= count, count <= share + 1, z3.Implies(count > 0, z3.And(start >= 0, start + count <= queues))),
    )


@dataclass(frozen=True, slots=True)
class Circle:
    """Member i begins at queue i + `first` and goes on in steps of members + `further`."""

    first: int
    further: int


def circle_is_a_partition(rule: Circle) -> Iterable[Obligation]:
    queues, members, share, rest, queue, turn = integers("queues members share rest queue turn")
    sizes = (queues >= 0, members >= 1, share >= 0, is_division(queues, members, share, rest))

    def owned(member: Number, at: Number) -> Truth:
        place = member + rule.first + at * (members + rule.further)
        return z3.And(member >= 0, member < members, at >= 0, queue == place, queue < queues)

    owner = z3.Int("owner")
    found = (queue >= 0, queue < queues, is_division(queue, members, turn, owner))
    yield Obligation(
        "every queue has an owner",
        (*sizes, *found, product_is_not_negative(-turn - 1, members)),
        owned(owner, turn),
    )
    one, other, again = integers("one other again")
    hints: tuple[Truth, ...] = (
        product_is_not_negative(turn - again - 1, members),
        product_is_not_negative(again - turn - 1, members),
    )
    both = (owned(one, turn), owned(other, again))
    yield Obligation("no queue has two owners", (*sizes, *both, *hints), one == other)

    # The turns of a member are 0 .. count - 1, and count is the whole part or one more.
    count = share + z3.If(one < rest, 1, 0)
    hints = (
        product_is_not_negative(turn - share, members),
        product_is_not_negative(share - turn - 1, members),
        product_is_not_negative(turn - share - 1, members),
    )
    place = one + rule.first + turn * (members + rule.further)
    is_turn = (one >= 0, one < members, turn >= 0)
    yield Obligation(
        "a share is a whole part, or one more", (*sizes, *is_turn, *hints), (place < queues) == (turn < count)
    )


@dataclass(frozen=True, slots=True)
class Blocks:
    """Member i owns `share` queues from i * (share + `wider`), and one more at i + `later` after all blocks."""

    wider: int
    later: int


def blocks_are_a_partition(rule: Blocks) -> Iterable[Obligation]:
    queues, members, share, rest, queue = integers("queues members share rest queue")
    sizes = (queues >= 0, members >= 1, share >= 0, is_division(queues, members, share, rest))

    def owned(member: Number) -> Truth:
        start = member * (share + rule.wider)
        in_block = z3.And(start <= queue, queue < start + share)
        one_more = z3.And(member < rest, queue == member + rule.later + share * members)
        return z3.And(member >= 0, member < members, queue >= 0, queue < queues, z3.Or(in_block, one_more))

    owner, inside = integers("owner inside")
    in_a_block = z3.And(queue < share * members, share >= 1, is_division(queue, share, owner, inside))
    behind = z3.And(queue >= share * members, owner == queue - share * members)
    hints: tuple[Truth, ...] = (
        product_is_not_negative(owner - members, share),
        product_is_not_negative(-owner - 1, share),
    )
    yield Obligation(
        "every queue has an owner",
        (*sizes, queue >= 0, queue < queues, z3.Or(in_a_block, behind), *hints),
        owned(owner),
    )
    one, other = integers("one other")
    hints = (
        product_is_not_negative(other - one - 1, share),
        product_is_not_negative(members - one - 1, share),
        product_is_not_negative(members - other - 1, share),
    )
    yield Obligation("no queue has two owners", (*sizes, one < other, owned(one), *hints), z3.Not(owned(other)))


CLAIMS: Final = (
    Claim(
        "AVG",
        "every queue has exactly one owner, and shares differ by at most one",
        average_is_a_partition,
        average_range,
        (
            Twin("the later members do not skip the rest", _start_without_the_rest),
            Twin("nobody owns one queue more", _never_one_more),
            Twin("the last member takes the whole rest", _the_last_takes_the_rest),
            Twin("two members have the same id", _first_of_two_equal_ids),
        ),
    ),
    Claim(
        "AVG_BY_CIRCLE",
        "every queue has exactly one owner, and shares differ by at most one",
        circle_is_a_partition,
        Circle(first=0, further=0),
        (
            Twin("the circle begins one later", Circle(1, 0)),
            Twin("the step is one too long", Circle(0, 1)),
            Twin("the step is one too short", Circle(0, -1)),
        ),
    ),
    Claim(
        "MACHINE_ROOM",
        "every queue in its rooms has exactly one owner",
        blocks_are_a_partition,
        Blocks(wider=0, later=0),
        (
            Twin("the blocks are one queue apart", Blocks(1, 0)),
            Twin("the blocks overlap by one queue", Blocks(-1, 0)),
            Twin("the rest begins one later", Blocks(0, 1)),
        ),
    ),
)
