"""The table of the last results is the plan for the next run."""

from __future__ import annotations

from pathlib import Path

from refmq.verify.spec.catalogue import find_configurations
from refmq.verify.spec.plan import SHORT_RUN_S, is_short, longest_first, recorded
from tests.verify.spec.helpers import TOY

LONG, SHORT, UNTIMED = "turnstile/mc/every_promise", "turnstile/mc/free_entry", "turnstile/mc/needs_fairness"
TABLE = """
| configuration | expected and found | distinct states | depth | processor time |
| --- | --- | --- | --- | --- |
| `turnstile/mc/every_promise` | ok | 1,234,567 | 12 | 90.5 s |
| `turnstile/mc/free_entry` | violation NobodyForFree | 8 | 3 | 1.0 s |
"""


def test_the_table_is_read(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(TABLE)
    known = recorded(tmp_path / "README.md")
    assert set(known) == {LONG, SHORT}
    assert (known[LONG].distinct, known[LONG].depth, known[LONG].seconds) == (1_234_567, 12, 90.5)
    assert recorded(tmp_path / "nothing.md") == {}


def test_the_unknown_come_first_then_the_longest(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(TABLE)
    known = recorded(tmp_path / "README.md")
    found = find_configurations(TOY, "MC")
    assert [one.name for one in longest_first(found, known)] == [UNTIMED, LONG, SHORT]
    assert [one.name for one in found if is_short(one, known)] == [SHORT, UNTIMED]
    assert known[SHORT].seconds < SHORT_RUN_S < known[LONG].seconds
