"""Offsets in a file, as broadcasting consumers keep them."""

from __future__ import annotations

from pathlib import Path

import pytest

from refmq.aio.offsets import LocalOffsets
from refmq.errors import DiskFailed
from refmq.model.ids import MessageQueue
from tests.aio.harness import run

pytestmark = pytest.mark.usefixtures("each_engine")

QUEUE = MessageQueue("T", "broker-a", 1)


def test_what_was_written_is_read_by_the_next_process(tmp_path: Path) -> None:
    async def story() -> None:
        store = LocalOffsets(tmp_path, "c", "g")
        assert await store.read(QUEUE) is None
        await store.write(QUEUE, 7, sure=True)
        assert await LocalOffsets(tmp_path, "c", "g").read(QUEUE) == 7
        assert await LocalOffsets(tmp_path, "other", "g").read(QUEUE) is None
        text = (tmp_path / "c" / "g" / "offsets.json").read_text()
        assert text == '{"offsetTable":{{"brokerName":"broker-a","queueId":1,"topic":"T"}:7}}', "as Java writes it"

    run(story())


def test_a_file_that_was_torn_is_replaced_by_its_backup(tmp_path: Path) -> None:
    async def story() -> None:
        store = LocalOffsets(tmp_path, "c", "g")
        await store.write(QUEUE, 7, sure=True)
        await store.write(QUEUE, 8, sure=True)
        for torn in (b"", b'{"offsetTable":{{"bro'):
            store.path.write_bytes(torn)
            assert await LocalOffsets(tmp_path, "c", "g").read(QUEUE) == 7
        store.path.with_name("offsets.json.bak").write_bytes(b"nonsense")
        with pytest.raises(DiskFailed, match="neither it nor its backup"):
            await LocalOffsets(tmp_path, "c", "g").read(QUEUE)

    run(story())


def test_a_folder_that_cannot_be_written_is_an_error_that_names_it(tmp_path: Path) -> None:
    async def story() -> None:
        (tmp_path / "c").write_text("a file where a folder should be")
        with pytest.raises(DiskFailed, match=r"offsets\.json"):
            await LocalOffsets(tmp_path, "c", "g").write(QUEUE, 7, sure=True)

    run(story())
