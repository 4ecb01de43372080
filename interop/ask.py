"""Requests to a broker, one at a time over a plain socket: what it serves by queue, by key and by id, byte for byte."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from refmq.errors import RefmqError
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.frame import FrameDecoder, encode
from refmq.protocol.record import decode_records, encode_record

PULL_MESSAGE: Final = 11
QUERY_MESSAGE: Final = 12
GET_MAX_OFFSET: Final = 30
VIEW_MESSAGE_BY_ID: Final = 33
SUCCESS: Final = 0
WITH_SUBSCRIPTION: Final = 4
"""System flag of a pull that brings its own subscription."""
TIMEOUT_S: Final = 30.0
END_OF_TIME_MS: Final = (1 << 62) - 1


class Asker:
    """One connection to a broker."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._decoder = FrameDecoder()
        self._opaque = 0

    def ask(self, code: int, fields: dict[str, str]) -> RemotingCommand:
        self._opaque += 1
        self._connection.sendall(encode(request(code, fields, opaque=self._opaque)))
        while True:
            data = self._connection.recv(1 << 16)
            if not data:
                raise RefmqError(f"the broker closed the connection on request {code}")
            for answer in self._decoder.feed(data):
                if answer.opaque == self._opaque:
                    return answer

    def max_offset(self, topic: str, queue_id: int) -> int:
        answer = self.ask(GET_MAX_OFFSET, {"topic": topic, "queueId": str(queue_id)})
        return int((answer.ext_fields or {})["offset"])

    def queue(self, topic: str, queue_id: int) -> list[bytes]:
        """Every record of a queue, in order."""
        found: list[bytes] = []
        offset, end = 0, self.max_offset(topic, queue_id)
        while offset < end:
            answer = self.ask(
                PULL_MESSAGE,
                {
                    "consumerGroup": "interop-reader",
                    "topic": topic,
                    "queueId": str(queue_id),
                    "queueOffset": str(offset),
                    "maxMsgNums": "32",
                    "sysFlag": str(WITH_SUBSCRIPTION),
                    "commitOffset": "0",
                    "suspendTimeoutMillis": "0",
                    "subscription": "*",
                    "subVersion": "1",
                    "expressionType": "TAG",
                },
            )
            following = int((answer.ext_fields or {}).get("nextBeginOffset", "-1"))
            if answer.code != SUCCESS or following <= offset:
                raise RefmqError(f"pulling {topic}/{queue_id} at {offset} gave {answer.code}: {answer.remark}")
            found += records_of(answer.body)
            offset = following
        return found

    def by_key(self, topic: str, key: str) -> list[bytes]:
        fields = {
            "topic": topic,
            "key": key,
            "maxNum": "64",
            "beginTimestamp": "0",
            "endTimestamp": str(END_OF_TIME_MS),
        }
        answer = self.ask(QUERY_MESSAGE, fields)
        return records_of(answer.body) if answer.code == SUCCESS else []

    def by_offset(self, physical_offset: int) -> bytes:
        answer = self.ask(VIEW_MESSAGE_BY_ID, {"offset": str(physical_offset)})
        return bytes(answer.body or b"") if answer.code == SUCCESS else b""


def records_of(body: bytes | None) -> list[bytes]:
    """The records of a response, each as its own bytes."""
    return [encode_record(record) for record in decode_records(bytes(body or b""))]


@contextmanager
def asking(port: int) -> Iterator[Asker]:
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
        connection.settimeout(TIMEOUT_S)
        yield Asker(connection)
