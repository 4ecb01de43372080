"""A nameserver and a broker that are attacked, a neighbour that they serve meanwhile, and what must hold behind it."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from interop.ours import OurBroker, OurNameserver
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.frame import FrameDecoder, encode
from refmq.protocol.headers.admin import CreateTopicRequest
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.pull import PullMessageRequest, PullSysFlag
from refmq.protocol.headers.send import SendMessageRequest, encode_send_header
from refmq.protocol.record import Record, decode_records, join_properties

WAIT_S: Final = 60.0
PAUSE_S: Final = 0.01
NEIGHBOUR: Final = "Neighbour"
SAYS_BUG: Final = ("Traceback", "hit a bug", "AssertionError", "RecursionError", "exception was never retrieved")


class Stranger:
    """A connection of somebody who sends what he likes."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), WAIT_S)
        self._decoder = FrameDecoder()
        self._numbers = itertools.count(1)
        self._arrived: dict[int, RemotingCommand] = {}

    def __enter__(self) -> Stranger:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def throw(self, data: bytes) -> None:
        """Bytes, and no interest in an answer."""
        self._socket.sendall(data)

    def send(self, command: RemotingCommand) -> int:
        """A request, whose answer is asked for later by this number."""
        number = next(self._numbers)
        self.throw(encode(replace(command, opaque=number)))
        return number

    def answer(self, number: int) -> RemotingCommand:
        while number not in self._arrived:
            data = self._socket.recv(1 << 18)
            if not data:
                raise ConnectionError("the server closed the connection")
            for command in self._decoder.feed(data):
                if command.is_response:
                    self._arrived[command.opaque] = command
        return self._arrived.pop(number)

    def ask(self, command: RemotingCommand) -> RemotingCommand:
        return self.answer(self.send(command))


@dataclass
class Neighbour(threading.Thread):
    """Somebody well-behaved: sends a message every few milliseconds, and remembers which were acknowledged."""

    port: int
    sent: list[bytes] = field(default_factory=list)
    """What was acknowledged."""
    made: int = 0
    times_s: list[float] = field(default_factory=list)
    trouble: str = ""

    def __post_init__(self) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        until = None
        while not self.over.is_set() and not self.trouble:
            try:
                with Stranger(self.port) as peer:
                    until = None
                    self.talk(peer)
            except OSError as error:  # an attack may restart the server; that takes a moment
                until = until or time.monotonic() + WAIT_S
                if time.monotonic() > until:
                    self.trouble = f"no answer: {error!r}"
                time.sleep(PAUSE_S)

    def talk(self, peer: Stranger) -> None:
        while not self.over.is_set():
            self.made += 1
            body = b"%d" % self.made
            begun = time.monotonic()
            answer = peer.ask(send_request(NEIGHBOUR, body))
            self.times_s.append(time.monotonic() - begun)
            if answer.code != ResponseCode.SUCCESS and answer.remark != "the broker is starting":
                self.trouble = f"a send was answered with {answer.code}: {answer.remark}"
                return
            if answer.code == ResponseCode.SUCCESS:
                self.sent.append(body)
            time.sleep(PAUSE_S)

    def p99_s(self) -> float:
        return sorted(self.times_s)[len(self.times_s) * 99 // 100] if self.times_s else 0.0


@dataclass
class Target:
    """The servers under attack."""

    broker: OurBroker
    nameserver: OurNameserver
    said: str = ""
    """What the broker has said in its lives before this one: each has a log of its own."""

    def stranger(self) -> Stranger:
        return Stranger(self.broker.port)

    def stranger_at_nameserver(self) -> Stranger:
        return Stranger(self.nameserver.port)

    def restart(self, *, kill: bool = False) -> None:
        """An end and a new start: what a stranger has left behind must not be in its way."""
        if kill:
            self.broker.kill()
        else:
            self.broker.stop()
        self.said += self.broker.child.output()
        self.broker.start()

    def bodies(self, topic: str, queue: int = 0) -> list[bytes]:
        """Every message of a queue."""
        return [record.body for record in self.records(topic, queue)]

    def records(self, topic: str, queue: int = 0) -> list[Record]:
        found: list[Record] = []
        with self.stranger() as peer:
            while True:
                answer = peer.ask(pull_request(topic, queue, len(found), consumer_group="TOOLS_CONSUMER"))
                if answer.code != ResponseCode.SUCCESS:
                    return found
                found += decode_records(answer.body)


@contextmanager
def attacked(
    folder: Path,
    engine: str,
    settings: Mapping[str, str] | None = None,
    change: tuple[str, str, str] | None = None,
) -> Iterator[tuple[Target, Neighbour]]:
    """Servers with a neighbour. Behind the attack everything is looked at that must hold after any. With a `change` the
    broker has a mistake."""
    with ExitStack() as stack:
        nameserver = stack.enter_context(OurNameserver(folder / "namesrv"))
        broker = OurBroker(folder / "broker", nameserver.address, settings=settings, engine=engine, change=change)
        stack.enter_context(broker)
        target = Target(broker, nameserver)
        with target.stranger() as peer:
            made = CreateTopicRequest(
                topic=NEIGHBOUR,
                default_topic="TBW102",
                read_queue_nums=1,
                write_queue_nums=1,
                perm=6,
                topic_filter_type="SINGLE_TAG",
            )
            assert peer.ask(request(RequestCode.UPDATE_AND_CREATE_TOPIC, encode_header(made))).code == 0
        neighbour = Neighbour(broker.port)
        neighbour.start()
        broker.child.wait_for(lambda: bool(neighbour.sent), "answer for the neighbour")
        try:
            yield target, neighbour
        finally:
            neighbour.over.set()
            neighbour.join(WAIT_S)
        assert neighbour.trouble == "", neighbour.trouble
        assert neighbour.sent, "the neighbour was served"
        target.restart()
        kept = set(neighbour.sent)  # of what was sent when a server ended nobody knows
        there = [body for body in target.bodies(NEIGHBOUR) if body in kept]
        assert there == neighbour.sent, "what was acknowledged is there, once and in order"
        said = target.said + broker.child.output() + nameserver.child.output()
        found = [line for line in said.splitlines() if any(word in line for word in SAYS_BUG)]
        assert found == []


# --- requests ---------------------------------------------------------------------------------------------------------


def send_request(
    topic: str, body: bytes, *, queue: int = 0, properties: Mapping[str, str] | None = None, **changes: Any
) -> RemotingCommand:
    fields: dict[str, Any] = {
        "producer_group": "producers", "topic": topic, "default_topic": "TBW102", "default_topic_queue_nums": 4,
        "queue_id": queue, "sys_flag": 0, "born_timestamp": 0, "flag": 0,
        "properties": join_properties(properties or {}),
    }  # fmt: skip
    return request(RequestCode.SEND_MESSAGE_V2, encode_send_header(SendMessageRequest(**(fields | changes))), body)


def pull_request(topic: str, queue: int = 0, offset: int = 0, **changes: Any) -> RemotingCommand:
    fields: dict[str, Any] = {
        "consumer_group": "g", "topic": topic, "queue_id": queue, "queue_offset": offset, "max_msg_nums": 32,
        "sys_flag": PullSysFlag.SUBSCRIPTION, "commit_offset": 0, "suspend_timeout_millis": 0, "subscription": "*",
        "sub_version": 0, "expression_type": "TAG",
    }  # fmt: skip
    return request(RequestCode.PULL_MESSAGE, encode_header(PullMessageRequest(**(fields | changes))))
