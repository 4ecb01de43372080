"""Tables and their files."""

from __future__ import annotations

from refmq.verify.oracles.tables import SeenTable, tables_saved


def test_a_file_that_holds_what_the_broker_knows_is_as_it_should_be() -> None:
    assert list(tables_saved([SeenTable("b", "topics.json", {"t": 4}, {"t": 4})])) == []


def test_a_file_that_holds_something_else_is_found() -> None:
    (finding,) = tables_saved([SeenTable("b", "topics.json", {"t": 4}, None)])
    assert finding.invariant == "TablesSaved"
