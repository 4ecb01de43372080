"""A permission that was taken away stays away: nothing begun after the answer to the revocation is served.

Each try takes away the queue that sends under way go to, and the permission to read; waits for the answer, and then
sends and pulls at once, over the connections that are busy and over one that is not. All of it must be refused, and the
queue must hold exactly what was acknowledged. (A topic's permission to write is no matter of the broker: as in
RocketMQ, clients look at it in routes.) A few tries run with the tests; `REFMQ_REVOCATIONS=100000` makes it a campaign.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

import refmq_fast
from refmq.broker.control_plane import Broker
from refmq.net.client import Client
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.headers.admin import CreateTopicRequest
from refmq.protocol.headers.codec import encode_header
from tests.net.broker_requests import TIMEOUT_S, max_offset, pull_request, send_request
from tests.net.broker_support import serving_broker
from tests.net.killing import FAST_ASYNC, Mode, spawn, started

TRIES = int(os.environ.get("REFMQ_REVOCATIONS", "60"))
AT_ONCE = 6
"""Topics whose permissions change side by side."""
UNDER_WAY = 4
"""Sends of each busy connection that nobody waits for."""
WRITE, READ_AND_WRITE = 2, 6

REFERENCE_ASYNC = Mode("flushDiskType=ASYNC_FLUSH\n")


class Passed(AssertionError):
    """Something went through that came after the answer to a revocation."""


@dataclass
class Count:
    tries: int = 0
    acknowledged: int = 0


def permit(topic: str, queues: int, permission: int) -> RemotingCommand:
    header = CreateTopicRequest(
        topic=topic, default_topic="TBW102", read_queue_nums=queues, write_queue_nums=queues, perm=permission,
        topic_filter_type="SINGLE_TAG",
    )  # fmt: skip
    return request(RequestCode.UPDATE_AND_CREATE_TOPIC, encode_header(header))


async def tries_of(address: str, topic: str, tries: int) -> Count:
    """Grants and revokes a permission again and again, under load."""
    count = Count()
    admin, idle, busy = Client(), Client(), [Client(), Client()]

    async def send(client: Client) -> int:
        answer = await client.invoke(address, send_request(topic, b"body", queue=1), TIMEOUT_S)
        count.acknowledged += answer.code == ResponseCode.SUCCESS
        return answer.code

    async def pull(client: Client) -> int:
        return (await client.invoke(address, pull_request(topic, queue=0), TIMEOUT_S)).code

    async def change(queues: int, permission: int) -> None:
        answer = await admin.invoke(address, permit(topic, queues, permission), TIMEOUT_S)
        assert answer.code == ResponseCode.SUCCESS, answer.remark

    try:
        for number in range(tries):
            await change(2, READ_AND_WRITE)
            granted = {await send(idle), await pull(idle)}
            assert granted == {ResponseCode.SUCCESS, ResponseCode.PULL_NOT_FOUND}, f"granted in vain: {granted}"
            before = [asyncio.create_task(send(client)) for client in busy for _ in range(UNDER_WAY)]
            if number % 2:
                await asyncio.sleep(0)
            await change(1, WRITE)
            sent = await asyncio.gather(*(send(client) for client in (*busy, idle)))
            pulled = await asyncio.gather(*(pull(client) for client in (*busy, idle)))
            if {*sent} != {ResponseCode.SYSTEM_ERROR} or {*pulled} != {ResponseCode.NO_PERMISSION}:
                raise Passed(f"try {number} of {topic}: sends {sent}, pulls {pulled}")
            await asyncio.gather(*before)
            count.tries += 1
        stored = await max_offset(admin, address, topic, 1)
        assert stored == count.acknowledged, f"{stored} messages in {topic}, {count.acknowledged} were acknowledged"
    finally:
        for client in (admin, idle, *busy):
            await client.close()
    return count


async def revoke_often(address: str, tries: int) -> int:
    counts = await asyncio.gather(
        *(tries_of(address, f"Revoked{number}", -(-tries // AT_ONCE)) for number in range(AT_ONCE))
    )
    return sum(count.tries for count in counts)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode", [REFERENCE_ASYNC, *([FAST_ASYNC] if refmq_fast.AVAILABLE else [])], ids=lambda m: m.engine
)
def test_no_send_passes_after_its_permission_was_revoked(tmp_path: Path, mode: Mode) -> None:
    async def story() -> int:
        process = await spawn(tmp_path, mode)
        try:
            return await revoke_often(await started(process), TRIES)
        finally:
            process.kill()
            await process.communicate()

    print(f"{asyncio.run(story())} revocations")


def test_a_table_that_is_installed_after_its_answer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def save_topics(self: Broker) -> None:
        self._saved_topics = self.state.topics
        asyncio.get_running_loop().call_later(0.02, lambda: self.engine.install(self.snapshot()))

    async def story() -> None:
        async with serving_broker() as (_, address):
            await tries_of(address, "Revoked", 1)  # the topic is made while all is well
            monkeypatch.setattr(Broker, "save_topics", save_topics)
            with pytest.raises(AssertionError, match=r"^try 0 of|in vain"):
                await tries_of(address, "Revoked", 20)

    asyncio.run(story())
