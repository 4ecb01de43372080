"""Random frames, in rounds whose answers do not depend on how fast a broker is.

A round is written to a connection at once. What it finds was dispatched before it began, so it holds sends or pulls and
not both; a request for which the control plane has to save something first stands alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random
from typing import Any, Final

from refmq.protocol.bodies import encode_body
from refmq.protocol.bodies.heartbeat import (
    ConsumeFromWhere,
    ConsumerData,
    ConsumeType,
    HeartbeatData,
    MessageModel,
    ProducerData,
    SubscriptionData,
)
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import ONEWAY_FLAG, RemotingCommand, SerializeType, request
from refmq.protocol.frame import encode
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.messages import ConsumerSendMsgBackRequest, QueryMessageRequest, ViewMessageRequest
from refmq.protocol.headers.offsets import (
    GetMaxOffsetRequest,
    QueryConsumerOffsetRequest,
    UpdateConsumerOffsetRequest,
)
from refmq.protocol.headers.pull import PullMessageRequest, PullSysFlag
from refmq.protocol.headers.send import SendMessageRequest, encode_send_header
from refmq.protocol.record import BatchedMessage, encode_batch, join_properties, string_hash

TOPICS: Final = {"T": (4, 6), "Several": (3, 6), "ReadOnly": (2, 4), "WriteOnly": (2, 2), "Barrier": (1, 6)}
"""Topic -> its queues and its permission; the driver makes them."""
BARRIER: Final = "Barrier"
GROUPS: Final = ("consumers", "others")
BORN_MS: Final = 1_700_000_000_000
FRAMES_PER_ROUND: Final = 64
TEXTS: Final = ("a", "b", "ä", "Größe", "\U0001f98a", "x" * 40, "true", "FALSE", "3", "+1", " 3", "٣", "99", "")
NAMES: Final = ("TAGS", "KEYS", "UNIQ_KEY", "WAIT", "CLUSTER", "own", "ünï", "REAL_TOPIC", "RETRY_TOPIC")
NUMBERS: Final = ("", "x", "-1", "+2", "0", "9" * 21, "true", "2147483648", "-9223372036854775808", "7 ")


class Kind(Enum):
    """What a round is about."""

    SENDS = "sends"
    PULLS = "pulls"
    ALONE = "one for the control plane"
    DAMAGED = "a damaged frame"


@dataclass(frozen=True, slots=True)
class Round:
    """Frames for one connection, and whose answers are waited for."""

    kind: Kind
    frames: tuple[bytes, ...]
    waits_for: frozenset[int]
    """By opaque. Of a damaged frame nobody knows."""


def with_key_twice(frame: bytes, key: str, value: str) -> bytes:
    """A frame with a binary header, and another value of a key in front of all others."""
    head, fields_at = 8, 25  # behind the two lengths of the frame; behind all that is not an ext field
    entry = len(key.encode()).to_bytes(2, "big") + key.encode() + len(value).to_bytes(4, "big") + value.encode()
    size = int.from_bytes(frame[fields_at : fields_at + 4], "big") + len(entry)
    lengths = int.from_bytes(frame[4:8], "big") + len(entry)
    return b"".join(
        (
            (len(frame) - 4 + len(entry)).to_bytes(4, "big"),
            lengths.to_bytes(4, "big"),
            frame[head:fields_at],
            size.to_bytes(4, "big"),
            entry,
            frame[fields_at + 4 :],
        )
    )


@dataclass
class Maker:
    """Makes rounds from a seed."""

    random: Random
    opaque: int = 0
    end: dict[tuple[str, int], int] = field(default_factory=dict)
    """Where queues end, as the driver has learnt it; pulls aim around it."""

    def round(self) -> Round:
        match self.random.randrange(40):
            case n if n < 18:
                return self._several(Kind.SENDS, (self.send, self.send, self.send, self.send, self.offset))
            case n if n < 34:
                return self._several(Kind.PULLS, (self.pull, self.pull, self.offset, self.bound, self.view))
            case n if n < 38:
                command = replace(self.finished(self.cold()), flag=0)  # nobody knows when a one-way one has ended
                return Round(Kind.ALONE, (encode(command),), frozenset((command.opaque,)))
            case _:
                return self.damaged()

    def _several(self, kind: Kind, makers: tuple[Callable[[], RemotingCommand], ...]) -> Round:
        count = self.random.choice((1, 3, FRAMES_PER_ROUND, FRAMES_PER_ROUND))
        commands = [self.finished(self.random.choice(makers)()) for _ in range(count)]
        awaited = frozenset(command.opaque for command in commands if not command.flag & ONEWAY_FLAG)
        return Round(kind, tuple(map(self.encoded, commands)), awaited)

    def encoded(self, command: RemotingCommand) -> bytes:
        """The frame; sometimes a binary header says a key twice, of which the last value counts."""
        frame = encode(command)
        if command.serialize_type is SerializeType.ROCKETMQ and command.fields and self.random.randrange(10) == 0:
            return with_key_twice(frame, self.random.choice(sorted(command.fields)), self.random.choice(NUMBERS))
        return frame

    def finished(self, command: RemotingCommand) -> RemotingCommand:
        """With a number of its own, in either form of a header, sometimes one-way."""
        self.opaque += 1
        oneway = ONEWAY_FLAG if self.random.randrange(12) == 0 else 0
        serialize = self.random.choice(list(SerializeType))
        return replace(command, opaque=self.opaque, flag=command.flag | oneway, serialize_type=serialize)

    # --- requests --------------------------------------------------------------------------------------------------

    def send(self) -> RemotingCommand:
        pick = self.random
        topic = pick.choice(("T", "T", "T", "T", "Several", "WriteOnly", "ReadOnly"))
        body = pick.randbytes(pick.choice((0, 1, 20, 20, 200, 3000)))
        batch = pick.randrange(6) == 0
        if batch:
            body = encode_batch((BatchedMessage(0, body, b"TAGS\x01a"),) * pick.randrange(4))
            body = body[: -pick.randrange(1, 5)] if pick.randrange(5) == 0 else body
        header = SendMessageRequest(
            producer_group="producers",
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=pick.choice((0, 0, 1, 1, 2, 3, 4)),  # below 0 a broker draws
            sys_flag=pick.choice((0, 0, 0, 0, 0, 1, 4, 8, 12)),
            born_timestamp=BORN_MS + pick.randrange(1000),
            flag=pick.choice((0, 0, -1, 7)),
            properties=self.properties(),
            reconsume_times=pick.choice((None, 0, 2)),
            batch=batch,
        )
        code = pick.choice((RequestCode.SEND_MESSAGE_V2,) * 3 + (RequestCode.SEND_MESSAGE,))
        if batch:
            code = pick.choice((code, RequestCode.SEND_BATCH_MESSAGE))
        plain = code == RequestCode.SEND_MESSAGE
        fields = encode_header(header) if plain else encode_send_header(header)
        return self.bent(request(code, fields, body))

    def properties(self) -> str:
        pick = self.random
        if pick.randrange(8) == 0:
            return "".join(pick.choices("ab\x01\x02TAGSKEYWAIT", k=pick.randrange(24)))
        names = pick.sample(NAMES, pick.choice((0, 1, 2, 3)))
        return join_properties({name: pick.choice(TEXTS) for name in names})

    def bent(self, command: RemotingCommand) -> RemotingCommand:
        """Sometimes with a field that is no number, or is missing."""
        fields = dict(command.fields)
        if self.random.randrange(12) == 0 and fields:
            name = self.random.choice(sorted(fields))
            if name in ("b", "topic"):
                return command  # a new topic is made, which takes its time
            if name in ("e", "queueId") or self.random.randrange(4) == 0:
                del fields[name]
            else:
                fields[name] = self.random.choice(NUMBERS)
        return replace(command, ext_fields=fields)

    def pull(self) -> RemotingCommand:
        pick = self.random
        topic, queue_id = (
            pick.choice(("T", "T", "T", "Several", "ReadOnly", "WriteOnly", "Nobody")),
            pick.randrange(-1, 5),
        )
        end = self.end.get((topic, queue_id), 0)
        flags = pick.choice(
            (PullSysFlag.SUBSCRIPTION, PullSysFlag.SUBSCRIPTION | PullSysFlag.COMMIT_OFFSET, PullSysFlag(0))
        )
        header = PullMessageRequest(
            consumer_group=pick.choice((*GROUPS, "nobody")),
            topic=topic,
            queue_id=queue_id,
            queue_offset=pick.choice((0, -1, end, end - 1, end + 3, pick.randrange(end + 1), 1 << 40)),
            max_msg_nums=pick.choice((-1, 0, 1, 2, 32)),
            sys_flag=flags,
            commit_offset=pick.randrange(-1, 60),
            suspend_timeout_millis=15_000,
            subscription=pick.choice(("*", "", "a", "a||b", " a || ä ", "||", "a|b")),
            sub_version=pick.randrange(4, 7),
            expression_type=pick.choice((None, "", "TAG", "TAG", "SQL92")),
        )
        return self.bent(request(RequestCode.PULL_MESSAGE, encode_header(header)))

    def offset(self) -> RemotingCommand:
        pick = self.random
        place: dict[str, Any] = {
            "consumer_group": pick.choice((*GROUPS, "fresh", "x" * 300, "")),
            "topic": pick.choice(("T", "Several", "Nobody")),
            "queue_id": pick.randrange(-1, 5),
        }
        if pick.randrange(2):
            header = UpdateConsumerOffsetRequest(**place, commit_offset=pick.randrange(-2, 60))
            return self.bent(request(RequestCode.UPDATE_CONSUMER_OFFSET, encode_header(header)))
        return self.bent(request(RequestCode.QUERY_CONSUMER_OFFSET, encode_header(QueryConsumerOffsetRequest(**place))))

    def bound(self) -> RemotingCommand:
        pick = self.random
        header = GetMaxOffsetRequest(topic=pick.choice(("T", "Several", "Nobody")), queue_id=pick.randrange(5))
        return self.bent(
            request(pick.choice((RequestCode.GET_MAX_OFFSET, RequestCode.GET_MIN_OFFSET)), encode_header(header))
        )

    def view(self) -> RemotingCommand:
        pick = self.random
        if pick.randrange(2):
            return request(
                RequestCode.VIEW_MESSAGE_BY_ID, encode_header(ViewMessageRequest(offset=pick.randrange(1 << 20)))
            )
        header = QueryMessageRequest(
            topic=pick.choice(("T", "Several")),
            key=pick.choice(TEXTS),
            max_num=pick.choice((1, 8)),
            begin_timestamp=0,
            end_timestamp=1 << 50,
        )
        return request(RequestCode.QUERY_MESSAGE, encode_header(header))

    def cold(self) -> RemotingCommand:
        pick = self.random
        match pick.randrange(4):
            case 0:
                return request(RequestCode.HEART_BEAT, {}, self.heartbeat())
            case 1:
                header = ConsumerSendMsgBackRequest(
                    offset=pick.choice((0, 0, pick.randrange(1 << 20))), group=pick.choice(GROUPS), delay_level=18
                )
                return request(RequestCode.CONSUMER_SEND_MSG_BACK, encode_header(header))
            case 2:
                return request(pick.choice((RequestCode.GET_ALL_DELAY_OFFSET, 999, 31_000)), {"some": "field"})
            case _:
                properties = join_properties({"DELAY": pick.choice(("18", "19", "99")), "TAGS": "a"})
                return self._send_of(properties)

    def _send_of(self, properties: str) -> RemotingCommand:
        header = SendMessageRequest(
            producer_group="producers",
            topic="T",
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=0,
            sys_flag=0,
            born_timestamp=BORN_MS,
            flag=0,
            properties=properties,
        )
        return request(RequestCode.SEND_MESSAGE_V2, encode_send_header(header), b"later")

    def heartbeat(self) -> bytes:
        pick = self.random
        tags = pick.choice(
            (("a", "b"), ())
        )  # Java sends both in two forms; who sends one of them only is taken at its word
        subscription = SubscriptionData(
            topic="T",
            sub_string="a || b",
            tags_set=tags,
            code_set=tuple(map(string_hash, tags)),
            sub_version=pick.randrange(3, 8),
        )
        consumer = ConsumerData(
            group_name=pick.choice(GROUPS),
            consume_type=ConsumeType.CONSUME_PASSIVELY,
            message_model=MessageModel.CLUSTERING,
            consume_from_where=ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET,
            subscription_data_set=(subscription,),
        )
        return encode_body(
            HeartbeatData(
                client_id=f"client{pick.randrange(2)}",
                producer_data_set=(ProducerData(group_name="producers"),),
                consumer_data_set=(consumer,),
            )
        )

    def damaged(self) -> Round:
        """One frame with some wrong bytes behind its length, and a sound send to the barrier behind it, whose answer is
        later than any of that frame."""
        makers = (self.send, self.pull, self.offset, self.bound)
        data = bytearray(encode(self.finished(self.random.choice(makers)())))
        for _ in range(self.random.choice((1, 1, 2, 5))):
            data[self.random.randrange(4, len(data))] = self.random.randrange(256)
        behind, _ = self.barrier(0)
        return Round(Kind.DAMAGED, (bytes(data), encode(behind)), frozenset((behind.opaque,)))

    # --- what the driver needs ---------------------------------------------------------------------------------------

    def barrier(self, offset: int) -> tuple[RemotingCommand, RemotingCommand]:
        """A send, and a pull of its message: when that is answered, everything in front of it was dispatched."""
        send = replace(self._send_of(""), ext_fields={**self._send_of("").fields, "b": BARRIER})
        header = PullMessageRequest(
            consumer_group=GROUPS[0],
            topic=BARRIER,
            queue_id=0,
            queue_offset=offset,
            max_msg_nums=1,
            sys_flag=PullSysFlag.SUSPEND | PullSysFlag.SUBSCRIPTION,
            commit_offset=0,
            suspend_timeout_millis=15_000,
            subscription="*",
            sub_version=0,
        )
        pull = request(RequestCode.PULL_MESSAGE, encode_header(header))
        self.opaque += 2
        return replace(send, opaque=self.opaque - 1), replace(pull, opaque=self.opaque)
