"""The medium below a simulated disk: pages, names, and what a power loss leaves of them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from refmq.model.ids import TimestampMs
from refmq.sim.choice import harshest, mildest, scripted
from refmq.sim.medium import PAGE_VERSIONS_MAX, Inode, Medium

PAGE = 4
SIZE = 40
WRITES = st.lists(
    st.integers(0, SIZE).flatmap(lambda at: st.tuples(st.just(at), st.binary(max_size=SIZE - at))), max_size=12
)


def file(size_bytes: int = SIZE, *, is_reserved: bool = True) -> Inode:
    return Inode(False, size_bytes, TimestampMs(1), PAGE, is_reserved)


def in_pages(inode: Inode) -> Inode:
    """The same file as a large one is kept."""
    found = file()
    found.whole, found.pages = None, {number: bytearray(page) for number, page in inode.pages.items()}
    return found


def folder() -> Inode:
    return Inode(True, 0, TimestampMs(0), PAGE)


@given(WRITES, st.integers(0, SIZE), st.data())
def test_a_file_reads_as_an_array_of_bytes_does(writes: list[tuple[int, bytes]], at: int, data: st.DataObject) -> None:
    inode, model = file(), bytearray(SIZE)
    for position, written in writes:
        inode.write(position, written)
        model[position : position + len(written)] = written
    length = data.draw(st.integers(0, SIZE - at))
    for each in (inode, inode.copy(), in_pages(inode)):
        assert each.read(at, length) == model[at : at + length]
        assert each.read(0, SIZE) == model


@given(WRITES)
def test_a_sparse_file_takes_what_its_writes_announced(writes: list[tuple[int, bytes]]) -> None:
    sparse = file(is_reserved=False)
    for position, written in writes:
        before = sparse.used_bytes
        announced = sparse.new_bytes(position, len(written))
        sparse.write(position, written)
        assert sparse.used_bytes == before + announced
    whole = file()
    assert whole.new_bytes(0, SIZE) == 0
    assert whole.used_bytes == SIZE


def test_a_page_is_remembered_as_it_was_flushed_and_as_it_was_lately() -> None:
    inode = file()
    for number in range(PAGE_VERSIONS_MAX + 3):
        inode.write(0, b"%04d" % number)
    versions = inode.unflushed[0]
    assert len(versions) == PAGE_VERSIONS_MAX
    assert versions[0] == bytes(PAGE), "the flushed content is never forgotten"
    assert versions[1:] == [b"%04d" % number for number in range(3, PAGE_VERSIONS_MAX + 2)]
    inode.size_is_durable = True
    inode.lose_power(scripted([len(versions)]))
    assert inode.read(0, PAGE) == bytes(PAGE)


def test_a_flush_that_began_earlier_puts_nothing_back() -> None:
    inode = file()
    inode.write(0, b"old!")
    first = {0: inode.page(0)}
    inode.write(0, b"new!")
    second = {0: inode.page(0)}
    inode.make_durable(second, flush=2)
    assert inode.unflushed == {}
    inode.make_durable(first, flush=1)
    assert inode.unflushed == {}, "what a later flush has put there stays"
    inode.write(0, b"last")
    inode.make_durable(second, flush=3)
    assert inode.unflushed == {0: [b"new!"]}, "what was written meanwhile is not durable"


def test_a_mild_power_loss_keeps_everything_and_a_harsh_one_what_was_flushed() -> None:
    for choose, expected in ((mildest, b"new!"), (harshest, b"old!")):
        inode = file()
        inode.size_is_durable = True
        inode.write(0, b"old!")
        inode.make_durable({0: inode.page(0)}, flush=1)
        inode.write(0, b"new!")
        inode.lose_power(choose)
        assert inode.read(0, PAGE) == expected
        assert inode.unflushed == {}


def medium() -> Medium:
    return Medium(PAGE, 1 << 20, folder())


def test_a_name_in_a_directory_that_is_lost_is_lost_with_it() -> None:
    disk, inner, inode = medium(), folder(), file()
    disk.change_names("d", None, inner)
    disk.change_names("d/f", None, inode)
    disk.make_durable(disk.changes_in("d"))
    assert disk.durable_paths() == {}, "nobody has flushed the directory that holds d"
    disk.make_durable(disk.changes_in(""))
    assert disk.durable_paths() == {"d": inner, "d/f": inode} == disk.names
    assert disk.used_bytes == SIZE


def test_a_rename_is_one_change_of_two_directories() -> None:
    disk, inode = medium(), file()
    for name in ("a", "b"):
        disk.change_names(name, None, folder())
    disk.change_names("a/f", None, inode)
    disk.make_durable(set(disk.changes))
    disk.change_names("b/g", "a/f", inode)
    assert disk.changes_in("a") == disk.changes_in("b") == set(disk.changes)
    assert set(disk.durable_paths()) == {"a", "b", "a/f"}
    disk.lose_power(harshest)
    assert set(disk.names) == {"a", "b", "a/f"}
    disk.change_names("b/g", "a/f", inode)
    disk.lose_power(mildest)
    assert set(disk.names) == {"a", "b", "b/g"}
