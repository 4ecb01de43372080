"""The way of a message in docs/explanation/layers.md is the way that a message takes."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import FrameType

import pytest

import refmq
from refmq.net.client import Client
from refmq.protocol.codes import ResponseCode
from tests.net.broker_requests import pull_request, send_request
from tests.net.broker_support import serving_broker
from tests.net.support import asking

ROOT = Path(refmq.__file__).parent
FAST = Path(__file__).parents[2] / "src" / "refmq_fast"
TURN = {
    "turn": ("epoll_wait", "receive_all", "rmq_lock_take", "serve_turn", "rmq_lock_release", "send_dirty"),
    "serve_turn": ("serve_ready", "rmq_write_appended", "    flush", "        dispatch"),
}
"""Functions of shell/loop.c, and what each of them calls, in order."""
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "layers.md"
ROW = re.compile(r"\| \d+ \| .* \| `([a-z_/.]+)` \| `(\w+)` \|")

Place = tuple[str, str]


def way(title: str) -> list[Place]:
    """The files and functions of one table of the page, in its order."""
    section = PAGE.read_text().split(f"### {title}\n")[1].split("\n## ")[0].split("\n### ")[0]
    return [(match[1], match[2]) for match in ROW.finditer(section)]


def calls_of(ask: Callable[[Client, str], Awaitable[int]]) -> list[Place]:
    """Every function of refmq that is called while a broker serves one request, in order."""
    calls: list[Place] = []

    def note(frame: FrameType, event: str, argument: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(ROOT)):
            calls.append((str(Path(file).relative_to(ROOT)), frame.f_code.co_name))

    async def story() -> None:
        async with serving_broker() as (_, address), asking() as client:
            first = await client.invoke(address, send_request("T", b"first"), 10)  # makes the topic
            assert first.code == ResponseCode.SUCCESS
            await asyncio.sleep(0)
            sys.setprofile(note)
            try:
                assert await ask(client, address) == ResponseCode.SUCCESS
                for _ in range(5):
                    await asyncio.sleep(0)  # what follows the answer
            finally:
                sys.setprofile(None)

    asyncio.run(story())
    return calls


async def send(client: Client, address: str) -> int:
    return (await client.invoke(address, send_request("T", b"second"), 10)).code


async def pull(client: Client, address: str) -> int:
    return (await client.invoke(address, pull_request("T"), 10)).code


@pytest.mark.parametrize(("title", "ask"), [("A send", send), ("A pull", pull)])
def test_a_message_takes_the_way_that_the_page_draws(title: str, ask: Callable[[Client, str], Awaitable[int]]) -> None:
    calls, drawn = calls_of(ask), way(title)
    assert len(drawn) >= 7, "the page has the table"
    at = 0
    for place in drawn:
        assert place in calls[at:], f"{place} does not follow {calls[at - 1] if at else 'the start'}"
        at = calls.index(place, at) + 1


def test_a_turn_of_the_io_thread_is_as_the_page_draws_it() -> None:
    """The functions are where the page says, and the two that hold a turn together call their parts in that order."""
    drawn = way("A turn of the IO thread")
    assert len(drawn) == 10, "the page has the table"
    for file, function in drawn:
        assert re.search(rf"^[^\s#].*\b{function}\(", (FAST / file).read_text(), re.MULTILINE), (file, function)
    loop = (FAST / "shell" / "loop.c").read_text()
    for whole, parts in TURN.items():
        body = loop.split(f"static void {whole}(")[1].split("\n}\n")[0]
        places = [body.index(f"{part}(") for part in parts]
        assert places == sorted(places), whole


def test_a_send_never_goes_back_to_be_checked_or_planned_once_it_is_written() -> None:
    calls = calls_of(send)
    written = calls.index(("store/append.py", "append_message"))
    again = [place for place in calls[written:] if place[0] in ("plane/send.py", "plane/puts.py", "plane/answers.py")]
    assert again == []


@pytest.mark.parametrize("path", sorted({file for title in ("A send", "A pull") for file, _ in way(title)}))
def test_every_file_of_the_page_exists(path: str) -> None:
    assert (ROOT / path).is_file()
