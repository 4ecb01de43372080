"""The rules change what they say, and nothing that they should leave alone."""

from __future__ import annotations

import pytest

from conformance.mutants.native_mechanical import SOURCES, every_mutant, mutants_of

SOURCE = """\
/* a < b && c */
#define LIMIT 4
static bool holds(state *self, int a)
{
    assert(a < 5);
    if (a <= 7 && self->open) {
        self->count = a + 1;
        rmq_write(self, "a - b");
        return false;
    }
    return RMQ_IS_RIGHT(RMQ_MISTAKE_X) || a > 2u;
}
"""


def lines_changed(source: str) -> dict[str, list[str]]:
    changes: dict[str, list[str]] = {}
    before = source.splitlines()
    for mutant in mutants_of("x.c", source):
        after = mutant.applied(source).splitlines()
        assert len(after) == len(before)
        (line,) = (new.strip() for old, new in zip(before, after, strict=True) if old != new)
        changes.setdefault(mutant.rule, []).append(line)
    return changes


def test_each_rule_changes_one_line() -> None:
    assert lines_changed(SOURCE) == {
        "compare": ["if (a < 7 && self->open) {", "return RMQ_IS_RIGHT(RMQ_MISTAKE_X) || a >= 2u;"],
        "boolean": ["if (a <= 7 || self->open) {", "return RMQ_IS_RIGHT(RMQ_MISTAKE_X) && a > 2u;"],
        "guard": ["if (0 && (a <= 7 && self->open)) {", "if (1 || (a <= 7 && self->open)) {"],
        "constant": [
            "if (a <= 6 && self->open) {",
            "if (a <= 8 && self->open) {",
            "self->count = a + 0;",
            "self->count = a + 2;",
            "return RMQ_IS_RIGHT(RMQ_MISTAKE_X) || a > 1u;",
            "return RMQ_IS_RIGHT(RMQ_MISTAKE_X) || a > 3u;",
        ],
        "sum": ["self->count = a - 1;"],
        "keep": [";"],
        "drop": [";"],
        "answer": ["return true;"],
    }


@pytest.mark.parametrize("folder", ["core", "store", "plane", "shell"])
def test_every_folder_has_hundreds_and_each_changes_its_file(folder: str) -> None:
    mutants = list(every_mutant((folder,)))
    assert len(mutants) > 500
    for mutant in mutants[::50]:
        source = (SOURCES / mutant.path).read_text()
        assert mutant.applied(source) != source
        assert mutant.text in source
