"""Histories of requests to a broker, as values, and what two brokers must answer alike.

A history is a list of steps; a step is a name and a few small numbers, so Hypothesis can make and shrink it. `Side`
turns a step into a request for one broker and the answer into something that can be compared. Each history has topics
and groups of its own, so that many of them can follow each other on the same two brokers. Nothing is compared that
cannot be the same: addresses, times, physical offsets, and the order of hash maps. A message that was sent is referred
to by its number; each side knows where its own copy is.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from refmq.errors import RefmqError, RequestTimedOut
from refmq.net.client import Client, no_requests
from refmq.net.connection import Connection
from refmq.protocol import fastjson
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import RemotingCommand, request
from refmq.protocol.headers.pull import PullSysFlag
from refmq.protocol.record import (
    BatchedMessage,
    decode_properties,
    decode_records,
    encode_batch,
    join_properties,
    parse_message_id,
)

TIMEOUT_S: Final = 30.0
SETTLE_S: Final = 30.0
SILENCE_S: Final = 0.5
UNDECIDED: Final = 0
PARKED_S: Final = 0.02
PULLING_CLIENT: Final = 9
"""A connection of its own: one that waits is not kept from asking, but real clients pull on their own as well."""
UNKNOWN_CODE: Final = 9_999
"""Of a request that every broker answers at once and that changes nothing."""
BROKER_NAME: Final = "broker-a"

SETTINGS: Final = {
    # Half messages are asked about and delayed ones delivered when a test says so, not in the middle of a history.
    "transactionCheckInterval": "3600000",
    "messageDelayLevel": " ".join(["1h"] * 17 + ["1s"]),
    "enablePropertyFilter": "true",
    "maxMessageSize": "65536",
}
SHORT_LEVEL: Final = 18

Step = tuple[Any, ...]
Answer = dict[str, Any]

TIMES: Final = frozenset(
    ("lastTimestamp", "lastUpdateTimestamp", "minTimeStamp", "maxTimeStamp", "consumeTimeStamp", "timestamp")
)
"""Fields that hold times: whether they are set can be compared."""
TIME_TEXTS: Final = frozenset(("minTimeStampStr", "maxTimeStampStr", "consumeTimeStampStr"))
"""The same as text: the form can be compared."""
TABLES: Final = frozenset(("topicConfigTable", "subscriptionGroupTable", "offsetTable"))
"""Of the whole broker: only what this history made is looked at."""
NOT_COMPARED: Final = frozenset(("clientAddr", "consumeTps", "dataVersion", "physicOffset", "delayTime"))
ID_FIELDS: Final = frozenset(("msgId", "indexLastUpdateTimestamp", "indexLastUpdatePhyoffset", "timestamp"))
ADDRESS: Final = re.compile(r"/?127\.0\.0\.1:\d+")
NO_SUCH_QUEUE: Final = re.compile(r"\d+@\S+ is not exist!$")
EXCEPTION: Final = "(an exception)"
STACK_FRAME: Final = re.compile(r"^[\w.$]+(Exception|Error)\b.*", re.DOTALL)


@dataclass(frozen=True)
class Sent:
    """A message that a broker took."""

    physical_offset: int
    queue_offset: int
    unique_key: str


@dataclass
class Side:
    """One broker in one history."""

    address: str
    number: int
    sent: list[Sent] = field(default_factory=list)
    clients: dict[int, Client] = field(default_factory=dict)
    pushed: Counter[tuple[int, int, str]] = field(default_factory=Counter)
    """What the broker told its clients unasked: how often, by client, code and group."""

    # --- names ------------------------------------------------------------------------------------------------------

    def topic(self, index: int) -> str:
        """0 and 1 are created first, 2 may come to be by a send, 3 never; then names that are special or no names."""
        special = ("TBW102", "SCHEDULE_TOPIC_XXXX", f"%RETRY%{self.group(0)}", f"%DLQ%{self.group(0)}", "a b", " ")
        longest = "L" * 128
        return f"H{self.number}-{index}" if index < 4 else (*special, longest)[index - 4]

    def group(self, index: int) -> str:
        return f"G{self.number}-{index}"

    def client_id(self, index: int) -> str:
        return f"client-{self.number}-{index}"

    # --- asking -----------------------------------------------------------------------------------------------------

    async def ask(self, command: RemotingCommand, client: int = 0, timeout_s: float = TIMEOUT_S) -> RemotingCommand:
        def note(connection: Connection, told: RemotingCommand) -> RemotingCommand:
            self.pushed[client, told.code, told.fields.get("consumerGroup", "")] += 1
            return no_requests(connection, told)

        if client not in self.clients:
            self.clients[client] = Client(note)
        return await self.clients[client].invoke(self.address, command, timeout_s)

    async def close(self) -> None:
        for client in self.clients.values():
            await client.close()

    async def settle(self) -> None:
        """Waits until what was stored can be read: the real broker dispatches on a thread of its own."""
        until = asyncio.get_running_loop().time() + SETTLE_S
        while True:
            answer = await self.ask(request(RequestCode.GET_BROKER_RUNTIME_INFO))
            if b'"dispatchBehindBytes":"0"' in answer.body:
                return
            if asyncio.get_running_loop().time() > until:
                raise RefmqError(f"{self.address} does not dispatch")
            await asyncio.sleep(0.002)

    async def hear(self) -> None:
        """Waits until every client has what it was told: brokers tell before they answer who made them tell, and
        what they write to one connection arrives in order."""
        for client in self.clients:
            await self.ask(request(UNKNOWN_CODE), client)

    async def take(self, step: Step) -> Answer:
        """Carries out a step and returns what can be compared of its answer."""
        if step[0] == "wait":
            return await self._wait(step)
        command, client = self._command(step)
        if step[0] == "end" and step[3] == UNDECIDED:  # upstream says nothing to that
            try:
                answer = await self.ask(command, client, SILENCE_S)
            except RequestTimedOut:
                return {"code": None}
        else:
            answer = await self.ask(command, client)
        if command.code in STORING:
            if "msgId" in answer.fields and step[0] == "send":
                self._remember(step, answer)
            await self.settle()
        return comparable(command, answer, f"{self.number}-")

    async def _wait(self, step: Step) -> Answer:
        """A pull that waits at the end of a queue, and the message that ends its wait."""
        _, group, topic, queue, expression, kind, properties = step
        edge, _ = self._command(("edge", RequestCode.GET_MAX_OFFSET, topic, queue))
        end = int((await self.ask(edge)).fields["offset"])
        at_once = ("pull", 11, group, topic, queue, end, 32, int(PullSysFlag.SUBSCRIPTION), expression, kind, 0)
        answer = await self.take(at_once)
        if answer["code"] != ResponseCode.PULL_NOT_FOUND:
            return answer  # it would not wait, and whether it comes before the message is a matter of luck
        flag = PullSysFlag.SUBSCRIPTION | PullSysFlag.SUSPEND
        pull, _ = self._command((*at_once[:7], int(flag), *at_once[8:]))
        fields = {**pull.fields, "suspendTimeoutMillis": "20000"}
        waiting = asyncio.ensure_future(self.ask(request(pull.code, fields), PULLING_CLIENT))
        await asyncio.sleep(PARKED_S)  # a pull that comes later finds the message at once and gets the same answer
        sent = await self.take(("send", RequestCode.SEND_MESSAGE_V2, topic, queue, properties, 10, ()))
        answer = comparable(pull, await waiting, f"{self.number}-")
        return {**answer, "sent": sent}

    def _remember(self, step: Step, answer: RemotingCommand) -> None:
        _, physical_offset = parse_message_id(answer.fields["msgId"].split(",")[0])
        unique_key = f"U{self.number}-{len(self.sent)}"
        self.sent.append(Sent(physical_offset, int(answer.fields["queueOffset"]), unique_key))

    def _sent(self, index: int) -> Sent:
        """A message by its number; one that is not there when there is none."""
        return self.sent[index % len(self.sent)] if self.sent else Sent(1 << 40, 0, "none")

    # --- requests ---------------------------------------------------------------------------------------------------

    def _command(self, step: Step) -> tuple[RemotingCommand, int]:
        """The request of a step, and which client sends it."""
        match step:
            case "topic", topic, read, write, perm, filter_type:
                fields = {
                    "topic": self.topic(topic), "defaultTopic": "TBW102", "readQueueNums": read,
                    "writeQueueNums": write, "perm": perm, "topicFilterType": filter_type, "topicSysFlag": 0,
                    "order": False,
                }  # fmt: skip
                return ask(RequestCode.UPDATE_AND_CREATE_TOPIC, fields), 0
            case "delete topic", topic:
                return ask(RequestCode.DELETE_TOPIC_IN_BROKER, {"topic": self.topic(topic)}), 0
            case "group", group, settings:
                body = json.dumps({"groupName": self.group(group), **dict(settings)}).encode()
                return request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=body), 0
            case "delete group", group, remove:
                fields = {"groupName": self.group(group), "removeOffset": remove}
                return ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, fields), 0
            case "send", code, topic, queue, properties, length, options:
                return self._send(code, topic, queue, dict(properties), length, dict(options)), 0
            case "batch", topic, queue, count, properties, damage:
                return self._batch(topic, queue, count, dict(properties), damage), 0
            case "pull", code, group, topic, queue, offset, count, flag, expression, kind, version:
                fields = {
                    "consumerGroup": self.group(group), "topic": self.topic(topic), "queueId": queue,
                    "queueOffset": offset, "maxMsgNums": count, "sysFlag": flag, "commitOffset": 1,
                    "suspendTimeoutMillis": 0, "subscription": expression, "subVersion": version,
                    "expressionType": kind,
                }  # fmt: skip
                return ask(code, fields), 0
            case "commit", group, topic, queue, offset:
                fields = {**self._place(group, topic, queue), "commitOffset": offset}
                return ask(RequestCode.UPDATE_CONSUMER_OFFSET, fields), 0
            case "committed", group, topic, queue:
                return ask(RequestCode.QUERY_CONSUMER_OFFSET, self._place(group, topic, queue)), 0
            case "edge", code, topic, queue:
                fields = {"topic": self.topic(topic), "queueId": queue, "timestamp": 0}
                return ask(code, fields), 0
            case "search", topic, queue, timestamp:
                fields = {"topic": self.topic(topic), "queueId": queue, "timestamp": timestamp}
                return ask(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, fields), 0
            case "heartbeat", client, producers, consumers:
                return self._heartbeat(client, producers, consumers), client
            case "unregister", client, producer, consumer:
                fields = {"clientID": self.client_id(client)}
                if producer is not None:
                    fields["producerGroup"] = self.group(producer)
                if consumer is not None:
                    fields["consumerGroup"] = self.group(consumer)
                return ask(RequestCode.UNREGISTER_CLIENT, fields), client
            case "of group", code, group:
                name = "producerGroup" if code == RequestCode.GET_PRODUCER_CONNECTION_LIST else "consumerGroup"
                return ask(code, {name: self.group(group)}), 0
            case "locks", code, client, group, topic, queues:
                queue_set = [
                    {"topic": self.topic(topic), "brokerName": BROKER_NAME, "queueId": queue} for queue in queues
                ]
                lock = {"consumerGroup": self.group(group), "clientId": self.client_id(client), "mqSet": queue_set}
                return request(code, body=json.dumps(lock).encode()), client
            case "send back", index, group, level, retries_max:
                fields = {
                    "offset": self._sent(index).physical_offset, "group": self.group(group), "delayLevel": level,
                    "originMsgId": "", "originTopic": self.topic(0), "unitMode": False,
                }  # fmt: skip
                if retries_max is not None:
                    fields["maxReconsumeTimes"] = retries_max
                return ask(RequestCode.CONSUMER_SEND_MSG_BACK, fields), 0
            case "end", index, group, decision:
                sent = self._sent(index)
                fields = {
                    "producerGroup": self.group(group), "tranStateTableOffset": sent.queue_offset,
                    "commitLogOffset": sent.physical_offset, "commitOrRollback": decision,
                    "fromTransactionCheck": False, "msgId": sent.unique_key, "transactionId": sent.unique_key,
                }  # fmt: skip
                return ask(RequestCode.END_TRANSACTION, fields), 0
            case "view", index:
                return ask(RequestCode.VIEW_MESSAGE_BY_ID, {"offset": self._sent(index).physical_offset}), 0
            case "query", topic, key, count:
                fields = {
                    "topic": self.topic(topic), "key": key.replace("#", f"U{self.number}-"), "maxNum": count,
                    "beginTimestamp": 0, "endTimestamp": (1 << 62) - 1,
                }  # fmt: skip
                return ask(RequestCode.QUERY_MESSAGE, fields), 0
            case "of topic", code, topic:
                return ask(code, {"topic": self.topic(topic)}), 0
            case "of both", code, group, topic:
                fields = {
                    "consumerGroup": self.group(group), "group": self.group(group), "topic": self.topic(topic),
                    "compareGroup": self.group(group), "filterGroups": self.group(1 - group % 2),
                    "srcGroup": self.group(group), "destGroup": self.group(2), "offline": True,
                }  # fmt: skip
                return ask(code, fields), 0
            case "reset", group, topic, timestamp, force:
                fields = {
                    "topic": self.topic(topic), "group": self.group(group), "timestamp": timestamp, "isForce": force,
                }  # fmt: skip
                return ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, fields), 0
            case "dump", topic, queue, index, count, group:
                fields = {"topic": self.topic(topic), "queueId": queue, "index": index, "count": count}
                if group is not None:
                    fields["consumerGroup"] = self.group(group)
                return ask(RequestCode.QUERY_CONSUME_QUEUE, fields), 0
            case "check client", expression, kind:
                data = {"topic": self.topic(0), "subString": expression, "expressionType": kind, "subVersion": 1}
                check = {"clientId": self.client_id(0), "group": self.group(0), "subscriptionData": data}
                return request(RequestCode.CHECK_CLIENT_CONFIG, body=json.dumps(check).encode()), 0
            case "all", code:
                return request(code), 0
            case "broken", code, missing, wrong, body:
                return self._broken(code, missing, wrong, body), 0
        raise AssertionError(step)

    def _place(self, group: int, topic: int, queue: int) -> dict[str, Any]:
        return {"consumerGroup": self.group(group), "topic": self.topic(topic), "queueId": queue}

    def _send_fields(
        self, topic: int, queue: int, properties: Mapping[str, str | int], options: dict[str, Any]
    ) -> dict[str, Any]:
        # A number stands for a text of that length: nobody wants to read 33,000 letters in a history.
        texts = {name: "y" * value if isinstance(value, int) else value for name, value in properties.items()}
        stored = {"UNIQ_KEY": f"U{self.number}-{len(self.sent)}", **texts}
        return {
            "a": self.group(0), "b": self.topic(topic), "c": "TBW102", "d": 3, "e": queue, "f": 0,
            "g": 1_700_000_000_000, "h": 7, "i": join_properties(stored), "j": 0, "k": False, "m": False, **options,
        }  # fmt: skip

    def _send(
        self, code: int, topic: int, queue: int, properties: dict[str, str | int], length: int, options: dict[str, Any]
    ) -> RemotingCommand:
        fields = self._send_fields(topic, queue, properties, options)
        if code in LONG_NAMES:
            fields = {LONG[name]: value for name, value in fields.items()}
        return ask(code, fields, b"%06d" % len(self.sent) + b"x" * length)

    def _batch(self, topic: int, queue: int, count: int, properties: dict[str, str], damage: str) -> RemotingCommand:
        messages = [
            BatchedMessage(body=b"batched %d" % index, properties=b"TAGS\x01T%d" % index, flag=3)
            for index in range(count)
        ]
        body = encode_batch(tuple(messages))
        if damage == "cut":
            body = body[:-3]
        elif damage == "noise":
            body = b"\x00\x00\x00\x09noise"
        fields = self._send_fields(topic, queue, properties, {"m": True})
        fields["i"] = join_properties(properties)
        return ask(RequestCode.SEND_BATCH_MESSAGE, fields, body)

    def _heartbeat(self, client: int, producers: tuple[int, ...], consumers: tuple[Any, ...]) -> RemotingCommand:
        body = {
            "clientID": self.client_id(client),
            "producerDataSet": [{"groupName": self.group(group)} for group in producers],
            "consumerDataSet": [
                {
                    "groupName": self.group(group), "consumeType": "CONSUME_PASSIVELY", "messageModel": model,
                    "consumeFromWhere": "CONSUME_FROM_LAST_OFFSET", "unitMode": False,
                    "subscriptionDataSet": [
                        {
                            "topic": self.topic(topic), "subString": expression, "expressionType": kind,
                            "subVersion": version, "classFilterMode": False, "tagsSet": [], "codeSet": [],
                        }
                        for topic, expression, kind, version in subscriptions
                    ],
                }
                for group, model, subscriptions in consumers
            ],
        }  # fmt: skip
        return request(RequestCode.HEART_BEAT, body=json.dumps(body).encode())

    def _broken(self, code: int, missing: int, wrong: int, body: bytes) -> RemotingCommand:
        """A request whose header lacks a field or holds something that is no number."""
        fields = {
            **self._send_fields(0, 0, {}, {}), "topic": self.topic(0), "queueId": 0, "consumerGroup": self.group(0),
            "queueOffset": 0, "maxMsgNums": 1, "sysFlag": 4, "commitOffset": 0, "suspendTimeoutMillis": 0,
            "subVersion": 0, "subscription": "*", "group": self.group(0), "offset": 0, "delayLevel": 0,
            "timestamp": 0, "key": "k", "maxNum": 1, "beginTimestamp": 0, "endTimestamp": 1,
        }  # fmt: skip
        name = BREAKABLE[code][missing % len(BREAKABLE[code])]
        fields[name] = "wrong" if wrong else None
        return ask(code, fields, body)


LONG: Final = {
    "a": "producerGroup", "b": "topic", "c": "defaultTopic", "d": "defaultTopicQueueNums", "e": "queueId",
    "f": "sysFlag", "g": "bornTimestamp", "h": "flag", "i": "properties", "j": "reconsumeTimes", "k": "unitMode",
    "l": "maxReconsumeTimes", "m": "batch",
}  # fmt: skip
LONG_NAMES: Final = (RequestCode.SEND_MESSAGE, RequestCode.SEND_REPLY_MESSAGE)

BREAKABLE: Final[dict[int, tuple[str, ...]]] = {
    RequestCode.SEND_MESSAGE_V2: ("e", "g"),
    RequestCode.QUERY_CONSUMER_OFFSET: ("queueId",),
    RequestCode.UPDATE_CONSUMER_OFFSET: ("commitOffset",),
    RequestCode.GET_MAX_OFFSET: ("queueId",),
    RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: ("timestamp",),
    RequestCode.QUERY_MESSAGE: ("maxNum",),
    RequestCode.VIEW_MESSAGE_BY_ID: ("offset",),
}
"""Fields whose want upstream notices before it has done anything."""

STORING: Final = frozenset(
    (
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.SEND_REPLY_MESSAGE,
        RequestCode.CONSUMER_SEND_MSG_BACK,
        RequestCode.END_TRANSACTION,
        RequestCode.PULL_MESSAGE,  # one that is out of range stores an event
    )
)
WITH_RECORDS: Final = frozenset(
    (
        RequestCode.PULL_MESSAGE,
        RequestCode.LITE_PULL_MESSAGE,
        RequestCode.VIEW_MESSAGE_BY_ID,
        RequestCode.QUERY_MESSAGE,
    )
)


def ask(code: int, fields: Mapping[str, Any], body: bytes = b"") -> RemotingCommand:
    def text(value: Any) -> str:
        return str(value).lower() if isinstance(value, bool) else str(value)

    return request(code, {name: text(value) for name, value in fields.items() if value is not None}, body)


# --- what is compared -------------------------------------------------------------------------------------------------


def comparable(command: RemotingCommand, answer: RemotingCommand, own: str) -> Answer:
    """Everything of an answer that two brokers can have in common. `own` is in every name of this history."""
    found: Answer = {"code": answer.code, "remark": comparable_remark(answer.remark)}
    found["fields"] = {
        name: bool(int(value or 0)) if name != "msgId" and name in ID_FIELDS else None if name in ID_FIELDS else value
        for name, value in answer.fields.items()
    }
    if command.code in WITH_RECORDS and answer.body:
        found["records"] = [comparable_record(record) for record in decode_records(answer.body)]
    elif answer.body:
        found["body"] = comparable_json(fastjson.parse(answer.body), own)
    return found


def same(theirs: Answer, mine: Answer) -> bool:
    """Whether two answers say the same, but for three things: where Java shows an exception, any words of ours will do;
    a batch that cannot be read is such an exception (1) there and an illegal message (13) here; and a queue that was
    asked for once is empty to upstream from then on, while to us it does not exist."""
    if (theirs["code"], mine["code"]) == (1, 13) and theirs["remark"] == EXCEPTION:
        return True
    if all(NO_SUCH_QUEUE.search(str(answer.get("remark"))) for answer in (theirs, mine)):
        return True
    if theirs.get("remark") == EXCEPTION and mine.get("remark"):
        mine = {**mine, "remark": EXCEPTION}
    return theirs == mine


def comparable_remark(remark: str | None) -> str | None:
    if remark is None or remark == "not set any response code":  # a leftover in some of upstream's answers
        return None
    if STACK_FRAME.match(remark):
        return EXCEPTION
    return ADDRESS.sub("ADDRESS", remark)


def comparable_record(record: Any) -> dict[str, Any]:
    properties = decode_properties(record.properties)
    if "ORIGIN_MESSAGE_ID" in properties:
        properties["ORIGIN_MESSAGE_ID"] = "(an id)"
    return {
        "place": (record.topic, record.queue_id, record.queue_offset),
        "flags": (record.flag, record.sys_flag),
        "born": record.born_timestamp_ms if record.born_timestamp_ms < 1_700_000_000_001 else "(now)",
        "retries": record.reconsume_times,
        "prepared": bool(record.prepared_transaction_offset),
        "body": record.body if not record.topic.startswith("OFFSET_MOVED") else b"",
        "properties": properties,
    }


def comparable_json(value: Any, own: str) -> Any:
    """JSON without order, times and addresses; tables of the whole broker without what other histories left there."""
    if isinstance(value, fastjson.JsonObject):
        found: dict[str, Any] = {}
        for key, item in value.members:
            name = json.dumps(comparable_json(key, own), sort_keys=True) if not isinstance(key, str) else key
            if name in NOT_COMPARED:
                continue
            if name in TIMES and isinstance(item, int):
                found[name] = (item > 0) - (item < 0)
            elif name in TIME_TEXTS and isinstance(item, str) and not item.startswith("1969"):  # that is: never
                found[name] = re.sub(r"\d", "0", item)
            elif name in TABLES and isinstance(item, fastjson.JsonObject):
                found[name] = {
                    json.dumps(comparable_json(each, own), sort_keys=True): comparable_json(config, own)
                    for each, config in item.members
                    if not isinstance(each, str) or own in each
                }
            else:
                found[name] = comparable_json(item, own)
        return found
    if isinstance(value, fastjson.JsonArray):
        return sorted(
            (comparable_json(item, own) for item in value.items), key=lambda item: json.dumps(item, sort_keys=True)
        )
    return value
