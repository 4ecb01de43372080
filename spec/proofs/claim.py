"""What a claim is, and how Z3 judges it.

A claim is a list of obligations, each an implication: the conclusion follows from the assumptions. It holds when for
every obligation Z3 finds the assumptions satisfiable (else the obligation would say nothing) and the assumptions with
the negated conclusion not satisfiable. The obligations are made by a function of one rule, so that the broken twins
are the same function applied to another rule.

Z3 does not decide arithmetic with products of unknowns. Where one is needed, the proof names the instance of
`product_is_not_negative` that leads on; such an instance is true whatever it is applied to, so it can make a proof
shorter but never wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import Any, Final, TypeAlias

import z3

TIMEOUT_MS: Final = 20_000
"""For one question to Z3. The slowest one takes a fraction of it."""

Number: TypeAlias = z3.ArithRef
Truth: TypeAlias = z3.BoolRef


class Verdict(Enum):
    """What Z3 said of a list of obligations."""

    PROVED = "proved"
    REFUTED = "refuted"
    VACUOUS = "vacuous"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Obligation:
    """One implication. A lemma is one that does not depend on the rule, so no twin can break it."""

    name: str
    assume: tuple[Truth, ...]
    conclude: Truth
    is_lemma: bool = False


@dataclass(frozen=True, slots=True)
class Twin:
    """A rule with a mistake in it."""

    mistake: str
    rule: Any


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement for all sizes, with the rule it is about and the mistakes that it must notice."""

    name: str
    says: str
    obligations: Callable[[Any], Iterable[Obligation]]
    rule: Any
    twins: tuple[Twin, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, the obligation that decided it, the model that refutes, and the time it took."""

    verdict: Verdict
    obligation: str
    model: str
    seconds: float


def judge(obligations: Iterable[Obligation], timeout_ms: int = TIMEOUT_MS) -> Judgement:
    """Proved if every obligation is; otherwise says which one is not, and why."""
    began = perf_counter()
    count = 0
    undecided = ""
    for obligation in obligations:
        count += 1
        answer, model = _satisfiable((*obligation.assume, z3.Not(obligation.conclude)), timeout_ms)
        if answer == z3.sat:
            return Judgement(Verdict.REFUTED, obligation.name, model, perf_counter() - began)
        if answer == z3.unknown:
            undecided = undecided or obligation.name
        elif _satisfiable(obligation.assume, timeout_ms)[0] != z3.sat:
            return Judgement(Verdict.VACUOUS, obligation.name, "", perf_counter() - began)
    if undecided or count == 0:
        return Judgement(Verdict.UNDECIDED, undecided, "", perf_counter() - began)
    return Judgement(Verdict.PROVED, "", "", perf_counter() - began)


def _satisfiable(formulas: Iterable[Truth], timeout_ms: int) -> tuple[z3.CheckSatResult, str]:
    solver = z3.Solver()
    solver.set("timeout", timeout_ms)
    solver.add(*formulas)
    answer = solver.check()
    if answer != z3.sat:
        return answer, ""
    model = solver.model()
    values = sorted(f"{name} = {model[name]}" for name in model.decls() if name.arity() == 0)
    return answer, ", ".join(values)


# --- arithmetic -----------------------------------------------------------------------------------------------------


def product_is_not_negative(a: Number, b: Number) -> Truth:
    """True of all integers: two factors that are not negative have such a product."""
    return z3.Implies(z3.And(a >= 0, b >= 0), a * b >= 0)


def is_division(number: Number, by: Number, quotient: Number, remainder: Number) -> Truth:
    """What `//` and `%` mean when `by` is above 0."""
    return z3.And(number == quotient * by + remainder, remainder >= 0, remainder < by)


def smaller(a: Number, b: Number) -> Number:
    return z3.If(a <= b, a, b)


def larger(a: Number, b: Number) -> Number:
    return z3.If(a >= b, a, b)


def integers(names: str) -> list[Number]:
    return list(z3.Ints(names))


def division_is_unique(rule: Callable[[Number, Number, Number, Number], Truth]) -> Iterable[Obligation]:
    a, b, n, by, q1, r1, q2, r2 = integers("a b n by q1 r1 q2 r2")
    yield Obligation("two factors that are not negative", (a >= 0, b >= 0), a * b >= 0, is_lemma=True)
    steps = (product_is_not_negative(q1 - q2 - 1, by), product_is_not_negative(q2 - q1 - 1, by))
    twice = (by >= 1, rule(n, by, q1, r1), rule(n, by, q2, r2))
    yield Obligation("one quotient and one remainder", (*twice, *steps), z3.And(q1 == q2, r1 == r2))


def _loose_division(number: Number, by: Number, quotient: Number, remainder: Number) -> Truth:
    return z3.And(number == quotient * by + remainder, remainder >= 0, remainder <= by)


CLAIMS: Final = (
    Claim(
        "division",
        "what the other proofs assume of division and products is true",
        division_is_unique,
        is_division,
        (Twin("the remainder may equal the divisor", _loose_division),),
    ),
)
