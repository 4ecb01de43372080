"""How two stores differ."""

from __future__ import annotations

import pytest

from refmq.inspect.diff import diff_stores
from tests.inspect.golden import LOG, QUEUE, changed, disk_of, golden


@pytest.mark.parametrize("name", ["clean", "killed"])
def test_a_store_does_not_differ_from_itself(name: str) -> None:
    assert list(diff_stores(disk_of(golden(name)), disk_of(golden(name)))) == []


def test_a_difference_is_named_by_its_field() -> None:
    contents = golden("clean")
    differences = list(diff_stores(disk_of(contents), disk_of(changed(contents, LOG, 16, (5).to_bytes(4, "big")))))
    assert [(difference.where, difference.left, difference.right) for difference in differences] == [
        ("log 0 flag", "0", "5")
    ]
    queue = list(diff_stores(disk_of(contents), disk_of(changed(contents, QUEUE, 15, b"\x01"))))
    assert [difference.where for difference in queue] == ["queue GoldenTopic/1 unit 0"]
    shorter = {path: data for path, data in contents.items() if path != "commitlog/00000000000000065536"}
    assert next(d.right for d in diff_stores(disk_of(contents), disk_of(shorter))) == "nothing"
