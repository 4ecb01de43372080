"""Sources of decisions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from refmq.sim.choice import harshest, mildest, scripted, seeded


@given(st.integers(), st.lists(st.integers(1, 1000), max_size=30))
def test_a_seed_decides_the_same_every_time_and_within_the_options(seed: int, options: list[int]) -> None:
    first, second = seeded(seed), seeded(seed)
    chosen = [first(bound) for bound in options]
    assert chosen == [second(bound) for bound in options]
    assert all(0 <= number < bound for number, bound in zip(chosen, options, strict=True))


def test_seeds_differ() -> None:
    assert len({tuple(choose(1000) for _ in range(4)) for choose in map(seeded, range(20))}) == 20


def test_a_script_is_taken_modulo_the_options_and_then_ends_mildly() -> None:
    choose = scripted([1, 7, 0])
    assert [choose(3) for _ in range(5)] == [1, 1, 0, 0, 0]
    choose = scripted([1], then=harshest)
    assert [choose(3) for _ in range(3)] == [1, 2, 2]


def test_the_extremes() -> None:
    assert (mildest(5), harshest(5)) == (0, 4)
