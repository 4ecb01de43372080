"""Drives the C++ client inside the `rocketmq` wheel by lines of JSON, as interop/go/main.go does for the Go client.

It runs in an environment of its own, in which the wheel is installed, and knows nothing of refmq. Bodies are text
without NUL bytes: the client's own binding reads them as C strings.
"""

from __future__ import annotations

import ctypes
import json
import os
import queue
import sys
import threading
import time
from collections import Counter
from typing import Any

from rocketmq.client import Message, MessageModel, Producer, PullConsumer, PushConsumer
from rocketmq.ffi import _CMessageQueue, _CPullStatus, dll

ROUTE_TIMEOUT_S = 30.0

output = threading.Lock()
named: dict[str, Any] = {}

# The client writes what it pleases to stdout: our lines go to a copy of it, and everything else to stderr.
LINES = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def say(line: dict[str, Any]) -> None:
    with output:
        LINES.write(json.dumps(line) + "\n")
        LINES.flush()


def text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


def message(command: dict[str, Any], body: str) -> Any:
    made = Message(command["topic"])
    made.set_body(body)
    if command.get("tag"):
        made.set_tags(command["tag"])
    if command.get("key"):
        made.set_keys(command["key"])
    if command.get("delay"):
        made.set_delay_time_level(command["delay"])
    for name, value in command.get("properties", {}).items():
        made.set_property(name, value)
    return made


def start_producer(command: dict[str, Any]) -> dict[str, Any]:
    made = Producer(command["group"])
    made.set_namesrv_addr(command["nameserver"])
    dll.SetProducerInstanceName(made._handle, command["name"].encode())
    if command.get("compression"):
        dll.SetProducerCompressMsgBodyOverHowmuch(ctypes.c_void_p(made._handle), command["compression"])
    if command.get("signed"):
        made.set_session_credentials("someone", "of no importance", "")
    made.start()
    named[command["name"]] = made
    return {}


def described(result: Any) -> dict[str, Any]:
    return {"status": int(result.status), "id": result.msg_id, "offset": result.offset}


def send(command: dict[str, Any]) -> dict[str, Any]:
    producer = named[command["name"]]
    made = message(command, command["body"])
    match command.get("how", "sync"):
        case "oneway":
            producer.send_oneway(made)
            return {}
        case "orderly":
            return described(producer.send_orderly(made, command["queue"]))
        case "oneway orderly":
            producer.send_oneway_orderly(made, command["queue"])
            return {}
        case "async":
            done: queue.Queue[Any] = queue.Queue()
            producer.send_async(made, done.put, done.put)
            result = done.get(timeout=command.get("timeout_s", 10))
            if isinstance(result, Exception):
                raise result
            return described(result)
        case _:
            return described(send_when_there_is_a_route(producer, made))


def send_when_there_is_a_route(producer: Any, made: Any) -> Any:
    """The client asks the nameserver once for each send and gives up when the answer is late, on a busy machine too."""
    until = time.monotonic() + ROUTE_TIMEOUT_S
    while True:
        try:
            return producer.send_sync(made)
        except Exception as error:
            if "No route info of this topic" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(0.2)


def send_batch(command: dict[str, Any]) -> dict[str, Any]:
    return described(named[command["name"]].send_batch([message(command, body) for body in command["bodies"]]))


def tell(name: str, got: Any) -> dict[str, Any]:
    return {
        "event": "message",
        "consumer": name,
        "topic": got.topic,
        "body": text(got.body),
        "tag": text(got.tags),
        "keys": text(got.keys),
        "id": got.id,
        "queue": got.queue_id,
        "offset": got.queue_offset,
        "times": got.reconsume_times,
        "store_size": got.store_size,
        "properties": {key: text(got[key]) for key in ("UNIQ_KEY", "REAL_TOPIC", "RETRY_TOPIC", "colour") if got[key]},
    }


def start_consumer(command: dict[str, Any]) -> dict[str, Any]:
    name, fail = command["name"], command.get("fail", 0)
    model = MessageModel.BROADCASTING if command.get("broadcast") else MessageModel.CLUSTERING
    made = PushConsumer(command["group"], orderly=command.get("orderly", False), message_model=model)
    made.set_namesrv_addr(command["nameserver"])
    made.set_instance_name(name)
    seen: Counter[str] = Counter()

    def listen(_: int, handle: int) -> int:
        from rocketmq.client import RecvMessage

        got = RecvMessage(handle)
        say(tell(name, got))
        body = text(got.body)
        seen[body] += 1
        return 1 if fail < 0 or seen[body] <= fail else 0

    # Its own `subscribe` raises inside the callback when a message is to come again, which Python prints.
    dll.Subscribe(made._handle, command["topic"].encode(), command.get("expression", "*").encode())
    if command.get("signed"):
        made.set_session_credentials("someone", "of no importance", "")
    made._register_callback(listen)
    made.start()
    named[name] = made
    return {}


def start_poller(command: dict[str, Any]) -> dict[str, Any]:
    made = PullConsumer(command["group"])
    made.set_namesrv_addr(command["nameserver"])
    made.start()
    named[command["name"]] = made
    return {}


def list_queues(command: dict[str, Any]) -> dict[str, Any]:
    found, count = ctypes.POINTER(_CMessageQueue)(), ctypes.c_int()
    handle = named[command["name"]]._handle
    status = dll.FetchSubscriptionMessageQueues(
        handle, command["topic"].encode(), ctypes.pointer(found), ctypes.pointer(count)
    )
    if int(status) != 0:
        raise RuntimeError(text(dll.GetLatestErrorMessage()))
    queues = sorted(found[index].queueId for index in range(count.value))
    dll.ReleaseSubscriptionMessageQueue(found)
    return {"queues": queues}


def pull_from(command: dict[str, Any]) -> dict[str, Any]:
    from rocketmq.client import RecvMessage

    wanted = _CMessageQueue(command["topic"].encode(), command["broker"].encode(), command["queue"])
    expression = command.get("expression", "*").encode()
    result = dll.Pull(
        named[command["name"]]._handle, ctypes.pointer(wanted), expression, command["offset"], command["count"]
    )
    answer = {
        "status": _CPullStatus(result.pullStatus).name,
        "next": result.nextBeginOffset,
        "min": result.minOffset,
        "max": result.maxOffset,
        "messages": [tell(command["name"], RecvMessage(result.msgFoundList[index])) for index in range(result.size)],
    }
    dll.ReleasePullResult(result)
    return answer


def stop(command: dict[str, Any]) -> dict[str, Any]:
    named.pop(command["name"]).shutdown()
    return {}


COMMANDS = {
    "producer": start_producer,
    "send": send,
    "batch": send_batch,
    "consumer": start_consumer,
    "poller": start_poller,
    "queues": list_queues,
    "pull": pull_from,
    "stop": stop,
}


def serve(command: dict[str, Any]) -> None:
    try:
        say({"id": command["id"], "result": COMMANDS[command["do"]](command)})
    except Exception as error:
        say({"id": command["id"], "error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    for line in sys.stdin:
        threading.Thread(target=serve, args=(json.loads(line),), daemon=True).start()
    os._exit(0)  # the client's own threads would keep the process
