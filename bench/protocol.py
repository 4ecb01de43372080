"""What reading and writing one send costs, against the standard library's ``json`` on the same fields.

    python -m bench.protocol [--rounds 5] [--json FILE]

| measured        | what is timed, each for one message                                | peer                      |
|-----------------|--------------------------------------------------------------------|---------------------------|
| encode json     | a send header to its ext fields, and the command to a frame        | ``json.dumps`` of a dict  |
| decode json     | the frame to a command, and its ext fields to a send header        | ``json.loads``            |
| encode binary   | the same with a binary header                                      | ``json.dumps``            |
| decode binary   | the same with a binary header                                      | ``json.loads``            |
| encode record   | a message of 1 KiB to the bytes of a pull response, with its CRC   | ``zlib.crc32`` of a body  |
| decode record   | the bytes to a message, CRC checked                                | ``zlib.crc32`` of a body  |
| decode route    | a route with 16 brokers to its value                               | ``json.loads``            |
| decode register | a registration of 1000 topics to its value                         | ``json.loads``            |
| decode dialect  | consumer offsets of 1000 groups with bare integer keys             | ``json.loads``, quoted    |

The peer only turns text into a dictionary (or sums a body): it knows no types, no limits and no errors. The ratio says
what those cost. Each number is the best of ``--rounds``, with ours and the peer's in turns.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs
from refmq.protocol.bodies import (
    BrokerData,
    ConsumerOffsets,
    DataVersion,
    JsonStyle,
    QueueData,
    RegisterBrokerBody,
    TopicConfig,
    TopicConfigSerializeWrapper,
    TopicRouteData,
    decode_body,
    encode_body,
)
from refmq.protocol.command import SerializeType, request
from refmq.protocol.frame import decode, encode
from refmq.protocol.headers import SendMessageRequest, decode_send_header, encode_send_header
from refmq.protocol.record import Record, decode_record, encode_record

SECONDS_PER_SAMPLE = 0.1

HEADER = SendMessageRequest(
    producer_group="producers",
    topic="TopicTest",
    default_topic="TBW102",
    default_topic_queue_nums=4,
    queue_id=2,
    sys_flag=0,
    born_timestamp=1_700_000_000_000,
    flag=0,
    properties="KEYS\x01k1\x02UNIQ_KEY\x010A010203ABCDFFFFFFFF010203040007\x02WAIT\x01true\x02TAGS\x01TagA",
    reconsume_times=0,
    broker_name="broker-a",
)
BODY = bytes(range(256)) * 4
HOST = HostAddress(bytes((10, 0, 0, 1)), 10911)
RECORD = Record(
    topic="TopicTest",
    queue_id=2,
    queue_offset=QueueOffset(42),
    physical_offset=PhysicalOffset(4096),
    flag=0,
    sys_flag=0,
    born_timestamp_ms=TimestampMs(1_700_000_000_000),
    born_host=HOST,
    store_timestamp_ms=TimestampMs(1_700_000_000_001),
    store_host=HOST,
    reconsume_times=0,
    prepared_transaction_offset=0,
    body=BODY,
    properties=(HEADER.properties or "").encode(),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """One line of the result."""

    name: str
    microseconds: float
    peer_microseconds: float

    @property
    def ratio(self) -> float:
        return self.microseconds / self.peer_microseconds


def best(ours: Callable[[], object], peer: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Seconds for one call of each, the best of ``rounds`` samples taken in turns."""
    counts = [calls_per_sample(ours), calls_per_sample(peer)]
    found = [float("inf"), float("inf")]
    for _ in range(rounds):
        for index, action in enumerate((ours, peer)):
            found[index] = min(found[index], timed(action, counts[index]) / counts[index])
    return found[0], found[1]


def calls_per_sample(action: Callable[[], object]) -> int:
    count = 1
    while (taken := timed(action, count)) < SECONDS_PER_SAMPLE / 4:
        count *= 2
    return max(1, int(count * SECONDS_PER_SAMPLE / taken))


def timed(action: Callable[[], object], count: int) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        action()
    return time.perf_counter() - begin


def send_cases() -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    plain = {"code": 310, "extFields": encode_send_header(HEADER), "flag": 0, "opaque": 5, "version": 409}
    text = json.dumps(plain)
    cases: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {}
    for kind, name in ((SerializeType.JSON, "json"), (SerializeType.ROCKETMQ, "binary")):
        cases[f"encode {name}"] = (partial(send, kind), lambda: json.dumps(plain))
        cases[f"decode {name}"] = (partial(receive, send(kind)), lambda: json.loads(text))
    return cases


def send(kind: SerializeType) -> bytes:
    return encode(request(310, encode_send_header(HEADER), BODY, opaque=5, serialize_type=kind))


def receive(frame: bytes) -> SendMessageRequest:
    return decode_send_header(decode(frame))


def record_cases() -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    encoded = encode_record(RECORD)
    return {
        "encode record": (lambda: encode_record(RECORD), lambda: zlib.crc32(BODY)),
        "decode record": (lambda: decode_record(encoded), lambda: zlib.crc32(BODY)),
    }


def body_cases() -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    names = [f"broker-{number}" for number in range(16)]
    route = encode_body(
        TopicRouteData(
            broker_datas=tuple(
                BrokerData(cluster="c", broker_name=name, broker_addrs={0: "10.0.0.1:10911"}) for name in names
            ),
            queue_datas=tuple(
                QueueData(broker_name=name, read_queue_nums=8, write_queue_nums=8, perm=6) for name in names
            ),
        )
    )
    topics = {f"topic-{number}": TopicConfig(topic_name=f"topic-{number}") for number in range(1000)}
    version = DataVersion(timestamp=1_700_000_000_000, counter=7)
    register = encode_body(
        RegisterBrokerBody(
            topic_config_serialize_wrapper=TopicConfigSerializeWrapper(data_version=version, topic_config_table=topics)
        )
    )
    offsets = ConsumerOffsets(offset_table={f"T@g{group}": dict.fromkeys(range(8), 12345) for group in range(1000)})
    dialect, quoted = encode_body(offsets, JsonStyle.FASTJSON), encode_body(offsets)
    return {
        "decode route": (lambda: decode_body(TopicRouteData, route), lambda: json.loads(route)),
        "decode register": (lambda: decode_body(RegisterBrokerBody, register), lambda: json.loads(register)),
        "decode dialect": (lambda: decode_body(ConsumerOffsets, dialect), lambda: json.loads(quoted)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.protocol", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="samples of each side, the best counts")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    lines = []
    print(f"{'measured':18} {'µs':>10} {'peer µs':>10} {'ratio':>8}")
    for name, (ours, peer) in {**send_cases(), **record_cases(), **body_cases()}.items():
        seconds, peer_seconds = best(ours, peer, options.rounds)
        lines.append(Measured(name, seconds * 1e6, peer_seconds * 1e6))
        print(f"{name:18} {lines[-1].microseconds:10.1f} {lines[-1].peer_microseconds:10.1f} {lines[-1].ratio:8.1f}")
    if options.json is not None:
        document = {
            "machine": platform.platform(),
            "python": platform.python_version(),
            "rounds": options.rounds,
            "lines": [{**asdict(line), "ratio": line.ratio} for line in lines],
        }
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
