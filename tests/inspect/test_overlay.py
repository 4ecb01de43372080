"""A disk over another one: what would a start change?"""

from __future__ import annotations

from dataclasses import replace

from refmq.inspect.overlay import OverlayDisk
from refmq.sim.disk import SimulatedDisk
from refmq.store import ReferenceStore
from tests.store.helpers import SMALL, at, bodies, new_disk, put_many, run, started


def stopped_store() -> SimulatedDisk:
    disk = new_disk()
    store = started(disk)
    put_many(store, 40)
    run(store.stop(at(100)))
    return disk


def test_a_write_is_seen_above_and_not_below() -> None:
    below = new_disk()
    below.put_contents({"a": b"0123456789"})
    above = OverlayDisk(below, at(0))
    file = above.open("a")
    file.write(2, b"xy")
    assert file.read(0, 10) == b"01xy456789"
    assert below.contents() == {"a": b"0123456789"}
    assert above.changes() == (("changed", "a"),)


def test_what_is_created_and_removed_is_named() -> None:
    below = new_disk()
    below.put_contents({"a": b"x"})
    above = OverlayDisk(below, at(0))
    above.create("b", 3).close()
    above.remove("a")
    assert above.changes() == (("removed", "a"), ("created", "b"))
    assert below.contents() == {"a": b"x"}


def test_a_write_of_the_same_bytes_is_no_change() -> None:
    below = new_disk()
    below.put_contents({"a": b"0123456789"})
    above = OverlayDisk(below, at(0))
    above.open("a").write(3, b"345")
    assert above.changes() == ()


def test_a_store_runs_on_it_and_leaves_the_lower_disk_alone() -> None:
    below = stopped_store()
    before = below.contents()
    above = OverlayDisk(below, at(200))
    store = ReferenceStore(above, replace(SMALL))
    run(store.start(at(200)))
    assert len(bodies(store)) == 40
    assert below.contents() == before
    assert ("created", "abort") in above.changes()
