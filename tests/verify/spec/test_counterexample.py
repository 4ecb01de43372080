"""A counterexample as steps that a person can read."""

from __future__ import annotations

from refmq.verify.spec.counterexample import history, render, steps_of, value_changes
from refmq.verify.spec.tlc import Found, Progress, read_output
from refmq.verify.spec.values import parse_value

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


def test_changes_name_the_smallest_place() -> None:
    before, after = parse_value("<<[a |-> 1, b |-> {}], 5>>"), parse_value("<<[a |-> 2, b |-> {}], 5>>")
    assert [(change.place, change.before, change.after) for change in value_changes("x", before, after)] == [
        ("x[1].a", 1, 2)
    ]
