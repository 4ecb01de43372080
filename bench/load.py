"""A load on a broker that costs its client as little as Python can: frames are made beforehand, answers glanced at.

A window of requests is kept under way on a few connections. Each request has a slot, which is its request id; when its
answer comes, the slot's next request goes out. What a slot sends is a template: for a send only the unique key in it
changes, at a known place. Answers are cut at their lengths and asked for three things: their code, their slot, and for
a pull where to go on. So one core of ours can ask for more than a broker on the other core can do, and the share of a
core that the client took (`Load.client_cpu_s`) tells whether that was so.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from refmq.errors import RefmqError
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.frame import encode
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.pull import PullMessageRequest, PullSysFlag
from refmq.protocol.headers.send import SendMessageRequest, encode_send_header
from refmq.protocol.record import join_properties

PULL_COUNT: Final = 32
RECEIVE_BYTES: Final = 1 << 18
SILENCE_S: Final = 30.0
"""A broker that says nothing for so long is hung."""

KEY_WIDTH: Final = 12
KEY: Final = b"#" * KEY_WIDTH
"""Stands in a template for the number of a message."""

CODE: Final = re.compile(rb'"code":(\d+)')
OPAQUE: Final = re.compile(rb'"opaque":(\d+)')
NEXT_OFFSET: Final = re.compile(rb'"nextBeginOffset":"(\d+)"')


@dataclass(frozen=True, slots=True)
class Load:
    """What one load did."""

    messages: int
    wall_s: float
    client_cpu_s: float

    @property
    def per_s(self) -> float:
        return self.messages / self.wall_s


class Wires:
    """Connections on which requests are written and answers read as bytes."""

    def __init__(self, port: int, count: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._sockets = [socket.create_connection(("127.0.0.1", port), SILENCE_S) for _ in range(count)]
        self._unread = [bytearray() for _ in range(count)]
        for index, each in enumerate(self._sockets):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._selector.register(each, selectors.EVENT_READ, index)

    def __len__(self) -> int:
        return len(self._sockets)

    def write(self, index: int, data: bytes | bytearray) -> None:
        self._sockets[index].sendall(data)

    def answers(self) -> Iterator[tuple[int, list[bytes]]]:
        """The complete frames, without their lengths, that came on each connection that has something to read."""
        ready = self._selector.select(SILENCE_S)
        if not ready:
            raise RefmqError(f"no answer for {SILENCE_S:g} s")
        for key, _ in ready:
            index: int = key.data
            data = self._sockets[index].recv(RECEIVE_BYTES)
            if not data:
                raise RefmqError("the broker closed a connection")
            unread = self._unread[index]
            unread += data
            yield index, cut(unread)

    def close(self) -> None:
        self._selector.close()
        for each in self._sockets:
            each.close()


def cut(unread: bytearray) -> list[bytes]:
    """Takes the complete frames off the front."""
    frames, at, end = [], 0, len(unread)
    while end - at >= 4:
        length = int.from_bytes(unread[at : at + 4], "big")
        if end - at - 4 < length:
            break
        frames.append(bytes(unread[at + 4 : at + 4 + length]))
        at += 4 + length
    del unread[:at]
    return frames


@contextmanager
def wires(port: int, count: int) -> Iterator[Wires]:
    opened = Wires(port, count)
    try:
        yield opened
    finally:
        opened.close()


def number_in(pattern: re.Pattern[bytes], frame: bytes) -> int:
    found = pattern.search(frame)
    if found is None:
        raise RefmqError(f"an answer without {pattern.pattern!r}: {frame[:300]!r}")
    return int(found[1])


def expect_success(frame: bytes) -> None:
    if number_in(CODE, frame) != 0:
        raise RefmqError(f"refused: {frame[4:300]!r}")


# --- sends ------------------------------------------------------------------------------------------------------------


def send_command(topic: str, queue: int, body: bytes, slot: int) -> RemotingCommand:
    properties = {"UNIQ_KEY": KEY.decode(), "WAIT": "true", "TAGS": "TagA"}
    header = SendMessageRequest(
        producer_group="bench", topic=topic, default_topic="TBW102", default_topic_queue_nums=4, queue_id=queue,
        sys_flag=0, born_timestamp=int(time.time() * 1000), flag=0, properties=join_properties(properties),
        reconsume_times=0, max_reconsume_times=0, broker_name="broker-a",
    )  # fmt: skip
    return request(RequestCode.SEND_MESSAGE_V2, encode_send_header(header), body, opaque=slot)


class SendSlots:
    """The frames of all slots, each with a new key whenever it is sent."""

    def __init__(self, topic: str, queues: int, body: bytes, window: int, first_key: int) -> None:
        self._frames = [bytearray(encode(send_command(topic, slot % queues, body, slot))) for slot in range(window)]
        self._key_at = [frame.index(KEY) for frame in self._frames]
        self._next = first_key

    def take(self, slot: int) -> bytearray:
        frame, at = self._frames[slot], self._key_at[slot]
        frame[at : at + KEY_WIDTH] = b"%012d" % self._next
        self._next += 1
        return frame


def send_for(connections: Wires, slots: SendSlots, window: int, seconds: float) -> Load:
    """Sends for some time with `window` requests under way, and waits for the answers of all of them."""
    cpu, begin = time.process_time(), time.perf_counter()
    until = begin + seconds
    for slot in range(window):
        connections.write(slot % len(connections), slots.take(slot))
    under_way, answered = window, 0
    while under_way:
        going_on = time.perf_counter() < until
        for index, frames in connections.answers():
            out = bytearray()
            for frame in frames:
                expect_success(frame)
                if going_on:
                    out += slots.take(number_in(OPAQUE, frame))
                else:
                    under_way -= 1
            answered += len(frames)
            if out:
                connections.write(index, out)
    return Load(answered, time.perf_counter() - begin, time.process_time() - cpu)


# --- pulls ------------------------------------------------------------------------------------------------------------


def pull_frame(topic: str, queue: int, offset: int) -> bytes:
    header = PullMessageRequest(
        consumer_group="bench", topic=topic, queue_id=queue, queue_offset=offset, max_msg_nums=PULL_COUNT,
        sys_flag=PullSysFlag.SUBSCRIPTION, commit_offset=0, suspend_timeout_millis=0, subscription="*", sub_version=0,
        expression_type="TAG",
    )  # fmt: skip
    return encode(request(RequestCode.PULL_MESSAGE, encode_header(header), opaque=queue))


def pull_all(
    connections: Wires, topic: str, ends: dict[int, int], now: Callable[[], float] = time.perf_counter
) -> Load:
    """Reads every queue from its beginning to its end, one pull of each queue under way, as a push consumer does."""
    cpu, begin = time.process_time(), now()
    at = dict.fromkeys(ends, 0)
    for queue in ends:
        connections.write(queue % len(connections), pull_frame(topic, queue, 0))
    under_way, found = len(ends), 0
    while under_way:
        for index, frames in connections.answers():
            for frame in frames:
                expect_success(frame)
                queue, following = number_in(OPAQUE, frame), number_in(NEXT_OFFSET, frame)
                found += count_records(frame)
                at[queue] = following
                if following < ends[queue]:
                    connections.write(index, pull_frame(topic, queue, following))
                else:
                    under_way -= 1
    if found != sum(ends.values()):
        raise RefmqError(f"{found} messages were pulled, {sum(ends.values())} are there")
    return Load(found, now() - begin, time.process_time() - cpu)


def count_records(frame: bytes) -> int:
    """The records in the body of an answer, stepped over by their lengths."""
    at = 4 + (int.from_bytes(frame[:4], "big") & 0xFF_FFFF)
    count = 0
    while at < len(frame):
        at += int.from_bytes(frame[at : at + 4], "big")
        count += 1
    return count
