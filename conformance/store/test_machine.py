"""The state machine: Hypothesis chooses the steps of a history, the runner takes them, the oracles judge the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from conformance.base import Broken, replay_line, save
from conformance.engines import BUILT_STORE_ENGINES, store_engine
from conformance.store import generate, patterns, steps
from conformance.store import history as h
from conformance.store.runner import Runner, run_history
from refmq.sim.choice import Choose


def choosing(data: st.DataObject) -> Choose:
    def choose(options: int, /) -> int:
        return data.draw(st.integers(0, options - 1)) if options > 1 else 0

    return choose


class StoreMachine(RuleBasedStateMachine):
    """One store and its faults."""

    engine_name = "reference"

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.setting = steps.setting(choosing(data))
        assume(store_engine(self.engine_name).refuses(self.setting) is None)
        self.steps: list[h.Step] = []
        self.runner = Runner(self.setting, store_engine(self.engine_name))

    def take(self, step: h.Step) -> None:
        self.steps.append(step)
        self.runner.take(step)

    def is_running(self) -> bool:
        return self.runner.store is not None

    @precondition(is_running)
    @rule(data=st.data())
    def append_message(self, data: st.DataObject) -> None:
        self.take(steps.append_message(choosing(data)))

    @precondition(is_running)
    @rule(data=st.data())
    def append_and_dispatch(self, data: st.DataObject) -> None:
        self.take(steps.append_message(choosing(data)))
        self.take(h.FlushLog())
        self.take(h.DispatchMessage())

    @precondition(is_running)
    @rule(data=st.data())
    def anything_running(self, data: st.DataObject) -> None:
        self.take(steps.next_step(choosing(data), is_running=True))

    @precondition(is_running)
    @rule(data=st.data())
    def process_crash(self, data: st.DataObject) -> None:
        self.take(steps.process_crash(choosing(data)))

    @precondition(is_running)
    @rule(data=st.data())
    def power_loss(self, data: st.DataObject) -> None:
        self.take(steps.power_loss(choosing(data)))

    @precondition(is_running)
    @rule(data=st.data())
    def serve_message(self, data: st.DataObject) -> None:
        self.take(steps.serve_message(choosing(data)))

    @precondition(is_running)
    @rule(data=st.data(), pattern=st.sampled_from(patterns.PATTERNS))
    def pattern(self, data: st.DataObject, pattern: Callable[[Choose], tuple[h.Step, ...]]) -> None:
        for step in pattern(choosing(data)):
            self.take(step)

    @precondition(lambda self: not self.is_running())
    @rule(data=st.data())
    def start_store(self, data: st.DataObject) -> None:
        self.take(steps.start_store(choosing(data)))

    @precondition(lambda self: not self.is_running())
    @rule(data=st.data())
    def anything_stopped(self, data: st.DataObject) -> None:
        self.take(steps.next_step(choosing(data), is_running=False))

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            violations = self.runner.finish()
            if violations:
                broken = Broken(violations)
                broken.history = h.History(self.setting, tuple(self.steps))  # type: ignore[attr-defined]
                raise broken


SEEDS: Final = {"reference": 800, "fast": 200, "fast-tails": 200}
"""How many histories each engine lives through. The effects of `fast` are compared with the reference's besides."""
SEEDS_AT_ONCE: Final = 25
"""Of these each test takes so many, so that several processors share them."""


@pytest.mark.parametrize(
    ("engine", "first"),
    [(engine, first) for engine in BUILT_STORE_ENGINES for first in range(0, SEEDS[engine], SEEDS_AT_ONCE)],
)
def test_no_history_of_a_seed_breaks_a_promise(engine: str, first: int) -> None:
    """Longer histories than those of the state machine, with patterns of steps that come together seldom by chance."""
    refused = 0
    for seed in range(first, first + SEEDS_AT_ONCE):
        history = generate.history(seed)
        if store_engine(engine).refuses(history.setting) is not None:
            refused += 1
            continue
        violations = run_history(history, engine).violations
        if violations:
            raise Broken(violations, replay_line(save("store", history.to_json(), violations)))
    assert refused <= SEEDS_AT_ONCE * 2 // 3, f"{refused} of {SEEDS_AT_ONCE} histories need what {engine} does not have"


@pytest.mark.parametrize("engine", BUILT_STORE_ENGINES)
def test_no_history_breaks_a_promise(engine: str) -> None:
    machine: Any = type("StoreMachine", (StoreMachine,), {"engine_name": engine})
    try:
        run_state_machine_as_test(
            machine,
            settings=settings(
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
            ),
        )
    except Broken as broken:
        history: h.History = broken.history  # type: ignore[attr-defined]
        path = save("store", history.to_json(), broken.violations)
        raise Broken(broken.violations, replay_line(path)) from None
