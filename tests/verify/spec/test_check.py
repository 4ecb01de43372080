"""What TLC prints, what it means, and whether it is what a configuration expects."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import UsageError
from refmq.verify.spec.catalogue import Configuration, Expectation, Profile
from refmq.verify.spec.check import judge
from refmq.verify.spec.counterexample import history, render, steps_of, value_changes
from refmq.verify.spec.table import BEGIN, END, write_table
from refmq.verify.spec.tlc import Found, Outcome, Progress, read_output
from refmq.verify.spec.traces import read_events, shrink_numbers, trace_module
from refmq.verify.spec.values import ModelValue, TlaFunction, TlaValue, parse_value, show, to_json

VIOLATION = """\
@!@!@STARTMSG 2262:0 @!@!@
TLC2 Version 2.15
@!@!@ENDMSG 2262 @!@!@
Parsing file X.tla
@!@!@STARTMSG 2110:1 @!@!@
Invariant Safe is violated.
@!@!@ENDMSG 2110 @!@!@
@!@!@STARTMSG 2121:1 @!@!@
The behavior up to this point is:
@!@!@ENDMSG 2121 @!@!@
@!@!@STARTMSG 2217:4 @!@!@
1: <Initial predicate>
/\\ log = <<>>
/\\ state = (n1 :> [up |-> TRUE, seen |-> {}] @@
  n2 :> [up |-> FALSE, seen |-> {1, 2}])

@!@!@ENDMSG 2217 @!@!@
@!@!@STARTMSG 2217:4 @!@!@
2: <AppendMessage line 40, col 5 to line 44, col 33 of module X>
/\\ log = <<1>>
/\\ state = (n1 :> [up |-> TRUE, seen |-> {7}] @@ n2 :> [up |-> FALSE, seen |-> {1, 2}])

@!@!@ENDMSG 2217 @!@!@
@!@!@STARTMSG 2200:0 @!@!@
Progress(5) at 2026-11-16 16:06:41: 1,051 states generated (3,537 s/min), 733 distinct states found, 17 states left.
@!@!@ENDMSG 2200 @!@!@
@!@!@STARTMSG 2194:0 @!@!@
The depth of the complete state graph search is 6.
@!@!@ENDMSG 2194 @!@!@
"""


def configuration(expect: Expectation, **others: object) -> Configuration:
    fields: dict[str, object] = {"invariants": ("Safe",), "properties": ("Lives",), **others}
    here = Path(__file__).parent / "toy"
    return Configuration(
        here / "MCTurnstile.cfg",
        here / "MCTurnstile.tla",
        "MC",
        "Turnstile",
        expect,
        frozenset({Profile.QUICK}),
        **fields,  # type: ignore[arg-type]  # the fields differ in type
    )


def test_a_violation_is_read_with_its_states() -> None:
    outcome = read_output(VIOLATION.splitlines(keepends=True))
    assert (outcome.found, outcome.name) == (Found.INVARIANT, "Safe")
    assert outcome.progress == Progress(6, 1051, 733, 0)
    assert [state.action for state in outcome.states] == ["Initial predicate", "AppendMessage"]
    steps = steps_of(outcome, "StoreRecovery")
    assert (steps[1].action, steps[1].by) == ("AppendMessage", "node")
    assert [change.place for change in steps[1].changes] == ["log", "state[n1].seen"]
    printed = render(steps, None)
    assert "2  AppendMessage  (node)" in printed
    assert "state[n1].seen: {} -> {7}" in printed
    saved = history(steps, None)
    assert saved["steps"][1] == {"step": "AppendMessage", "by": "node", "changes": {"log": [1], "state[n1].seen": [7]}}  # type: ignore[index]  # JSON data


@pytest.mark.parametrize(
    ("code", "text", "found", "name"),
    [
        ("2114:1", "Deadlock reached.", Found.DEADLOCK, ""),
        ("2116:1", "Temporal properties were violated.", Found.TEMPORAL, ""),
        (
            "2112:1",
            "Action property line 5, col 1 of module X is violated.",
            Found.ACTION_PROPERTY,
            "line 5, col 1 of module X",
        ),
        ("2107:1", "Invariant Safe is violated by the initial state:\n/\\ x = 1", Found.INVARIANT, "Safe"),
        ("1000:1", "TLC threw an unexpected exception.", Found.ERROR, ""),
        ("5001:0", "File not found.", Found.ERROR, ""),
        ("2193:0", "Model checking completed. No error has been found.", Found.OK, ""),
    ],
)
def test_every_kind_of_end_is_recognised(code: str, text: str, found: Found, name: str) -> None:
    number = code.split(":")[0]
    outcome = read_output(
        [f"@!@!@STARTMSG {code} @!@!@\n", *text.splitlines(keepends=True), "\n", f"@!@!@ENDMSG {number} @!@!@\n"]
    )
    assert (outcome.found, outcome.name) == (found, name)


def test_only_the_expected_end_is_accepted() -> None:
    safe = Outcome(Found.INVARIANT, "Safe")
    assert judge(configuration(Expectation("violation", "Safe")), safe).ok
    assert judge(configuration(Expectation("ok")), Outcome()).ok
    assert judge(configuration(Expectation("violation", "Lives", True)), Outcome(Found.TEMPORAL)).ok
    assert judge(configuration(Expectation("deadlock")), Outcome(Found.DEADLOCK)).ok
    for expect, outcome in [
        (Expectation("ok"), safe),
        (Expectation("violation", "Safe"), Outcome()),
        (Expectation("violation", "Safe"), Outcome(Found.INVARIANT, "TypeOK")),
        (Expectation("violation", "Safe"), Outcome(Found.DEADLOCK)),
        (Expectation("violation", "Lives", True), safe),
        (Expectation("ok"), Outcome(Found.TIMEOUT)),
        (Expectation("ok"), Outcome(Found.ERROR)),
        (Expectation("violation", "Safe"), Outcome(Found.ERROR)),
    ]:
        verdict = judge(configuration(expect), outcome)
        assert not verdict.ok
        assert verdict.reason


def test_an_action_that_is_never_taken_is_found() -> None:
    covering = configuration(Expectation("ok"), covers=True)
    assert judge(covering, Outcome(coverage={"InsertCoin": 1, "WalkIn": 2})).ok
    missing = judge(covering, Outcome(coverage={"InsertCoin": 1, "WalkIn": 0}))
    assert (missing.ok, missing.reason) == (False, "never taken: WalkIn")
    spared = configuration(Expectation("ok"), covers=True, covers_except=frozenset({"WalkIn"}))
    assert judge(spared, Outcome(coverage={"InsertCoin": 1})).ok


VALUES: st.SearchStrategy[TlaValue] = st.recursive(
    st.one_of(
        st.integers(-99, 99),
        st.booleans(),
        st.text(alphabet='ab "\\x', max_size=4),
        st.sampled_from([ModelValue("m1"), ModelValue("m2")]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.sampled_from(["f", "g"]), inner, min_size=1).map(lambda d: TlaFunction(tuple(d.items()))),
        st.dictionaries(st.integers(0, 3), inner, min_size=1).map(lambda d: TlaFunction(tuple(d.items()))),
        st.frozensets(st.integers(0, 5), max_size=3),
    ),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_that_is_shown_can_be_read_again(value: TlaValue) -> None:
    assert parse_value(show(value)) == value


def test_values_are_read_as_tlc_prints_them() -> None:
    assert parse_value("1..3") == frozenset({1, 2, 3})
    assert to_json(parse_value('[a |-> <<1, m1>>, b |-> {"y", "x"}]')) == {"a": [1, "m1"], "b": ["x", "y"]}
    for text in ("<<1", "[a |->", "1 2", "?"):
        with pytest.raises(ValueError, match=r"the value|expected"):
            parse_value(text)


def test_changes_name_the_smallest_place() -> None:
    before, after = parse_value("<<[a |-> 1, b |-> {}], 5>>"), parse_value("<<[a |-> 2, b |-> {}], 5>>")
    assert [(change.place, change.before, change.after) for change in value_changes("x", before, after)] == [
        ("x[1].a", 1, 2)
    ]


def test_the_table_replaces_the_rows_that_ran_and_keeps_the_others(tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(
        f"before\n{BEGIN}\n| `MCOther` | ok | 5 | 2 | 1 s |\n| `MCGone` | ok | 5 | 2 | 1 s |\n{END}\nafter\n"
    )
    (tmp_path / "MCTurnstile.cfg").touch()
    (tmp_path / "MCOther.cfg").touch()
    verdict = judge(configuration(Expectation("ok")), Outcome(progress=Progress(7, 9000, 1234), seconds=3.4))
    write_table(readme, [verdict])
    text = readme.read_text()
    assert "| `MCTurnstile` | ok | 1,234 | 7 | 3.4 s |" in text
    assert "| `MCOther` | ok | 5 | 2 | 1 s |" in text
    assert "MCGone" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    readme.write_text("nothing")
    with pytest.raises(UsageError, match="no place for the table"):
        write_table(readme, [verdict])


def test_a_trace_becomes_a_module_with_small_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(
        '{"action": "AppendMessage", "subject": "T", "queue_id": 0, "a": 0, "b": 0, "c": 9000000000000, "d": 91}\n\n'
        '{"step": "WriteCheckpoint", "log_ms": 1700000000005, "queue_ms": 1700000000001, "index_ms": 0}\n'
        '{"action": "AckPut", "subject": "T", "queue_id": 0, "message": 9000000000000}\n'
    )
    events = read_events(path, "StoreRecovery")
    small = shrink_numbers(events)
    assert (small[0]["message"], small[0]["size_bytes"], small[2]["message"]) == (1, 91, 1)
    assert (small[1]["log_ms"], small[1]["queue_ms"], small[1]["index_ms"]) == (2, 1, 0)
    text = trace_module("StoreRecovery", events)
    assert '[action |-> "AppendMessage", actor |-> "", subject |-> "T", queue_id |-> 0, physical_offset |-> 0' in text
    assert "EXTENDS TraceStoreRecovery" in text


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "t.jsonl:1: not JSON"),
        ("[]", "an event is a JSON object"),
        ('{"action": "Dance"}', "StoreRecovery has no action 'Dance'"),
        ('{"action": "FlushLog", "a": "x"}', "flushed_to is 'x', not a whole number"),
    ],
)
def test_a_line_that_is_no_event_is_named(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(line + "\n")
    with pytest.raises(UsageError, match=complaint):
        read_events(path, "StoreRecovery")


def test_numbers_beyond_32_bits_are_refused() -> None:
    with pytest.raises(UsageError, match="more than TLC's 32 bits"):
        shrink_numbers([{"action": "FlushLog", "flushed_to": 2**40}])
