"""The inputs to begin with: whatever the real RocketMQ wrote and is kept in tests/golden, and small things of our own.

Findings of earlier campaigns are kept in fuzz/found/TARGET and belong to the seeds as well.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path
from typing import Final

from fuzz.targets import BODY_TYPES, TARGETS
from refmq.protocol.bodies import encode_body
from refmq.protocol.codes import ResponseCode
from refmq.protocol.command import RemotingCommand, SerializeType
from refmq.protocol.compression import CompressionType, compress
from refmq.protocol.frame import PREFIX_SIZE, FrameDecoder
from refmq.protocol.registry import ROWS
from refmq.store.checkpoint import Checkpoint, encode_checkpoint
from refmq.trace.memory import MemoryRecorder

ROOT: Final = Path(__file__).parent.parent
GOLDEN: Final = ROOT / "tests" / "golden"
FOUND: Final = Path(__file__).parent / "found"
SEED_BYTES_MAX: Final = 16 * 1024

SQL: Final = (
    "n > 1",
    "TAGS = 'b' AND n BETWEEN 1 AND 2",
    "a IS NOT NULL OR NOT (b <> 'x' AND c <= -1.5)",
    "a IN ('x', 'y''z') OR b NOT IN ('q')",
    "a = TRUE AND 1 < b",
)


@cache
def captured() -> tuple[tuple[int, bytes], ...]:
    """Request code and bytes of every frame that was captured."""
    lines = (GOLDEN / "frames" / "captured.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return tuple((row["request_code"], base64.b64decode(row["frame"])) for row in rows)


@cache
def commands() -> tuple[tuple[int, RemotingCommand, bytes], ...]:
    """The same, read: request code, command, header bytes."""
    found = []
    for code, raw in captured():
        (command,) = FrameDecoder().feed(raw)
        length = int.from_bytes(raw[5:8], "big")
        found.append((code, command, raw[PREFIX_SIZE : PREFIX_SIZE + length]))
    return tuple(found)


def seeds_of(name: str) -> list[bytes]:
    """The seeds of a target, none of them empty, and what campaigns have found for it."""
    assert name in TARGETS, name
    kept = [path.read_bytes() for path in sorted((FOUND / name).glob("*.bin"))]
    return [seed[:SEED_BYTES_MAX] for seed in [*_MAKERS[name](), *kept] if seed]


def _frames() -> list[bytes]:
    raw = [frame for _, frame in captured() if len(frame) <= SEED_BYTES_MAX]
    return [*raw, raw[0] + raw[1] + raw[2]]


def _headers(serialize_type: SerializeType) -> list[bytes]:
    return [header for _, command, header in commands() if command.serialize_type is serialize_type]


def _records() -> list[bytes]:
    return [
        command.body
        for code, command, _ in commands()
        if code in (11, 12, 33, 39)
        and command.body
        and (not command.is_response or command.code == ResponseCode.SUCCESS)
    ]


def _batches() -> list[bytes]:
    return [command.body for code, command, _ in commands() if code == 320 and not command.is_response]


def _texts() -> list[bytes]:
    return [command.body for _, command, _ in commands() if command.body[:1] in (b"{", b"[")]


def _bodies() -> list[bytes]:
    number = {body_type: index for index, body_type in enumerate(BODY_TYPES)}
    row = {int(each.code): each for each in ROWS}
    found = []
    for code, command, _ in commands():
        each = row.get(code)
        kind = None if each is None else each.response_body if command.is_response else each.body
        if kind in number and command.body:
            found.append(bytes([number[kind]]) + command.body)
    for body_type, index in number.items():
        try:
            found.append(bytes([index]) + encode_body(body_type()))
        except TypeError:
            continue  # it has fields without a default
    return found


def _registrations() -> list[bytes]:
    return [command.body for code, command, _ in commands() if code == 103 and not command.is_response]


def _compressed() -> list[bytes]:
    found = []
    for kind in CompressionType:
        try:
            found.append(bytes([kind >> 8]) + compress(b"hello " * 100, 0, kind)[0])
        except Exception:  # the extra is not installed
            continue
    return found


def _trace() -> list[bytes]:
    from refmq.model.step import Event

    recorder = MemoryRecorder("broker-a", lambda: 1_700_000_000_000_000_000)
    for number in range(20):
        recorder.record(Event("AckPut", f"client-{number % 3}", "topic" * 30, number % 4, number, number * 2, -1, 7))
    return [recorder.to_bytes()]


def _store() -> list[bytes]:
    from fuzz.store_target import EDIT

    return [
        b"\0",
        b"\1",
        *[
            bytes([clean]) + EDIT.pack(file, 0, 37 * file, 4) + b"\xff\0\1\x80"
            for clean in (0, 1)
            for file in range(12)
        ],
        *[
            bytes([clean]) + EDIT.pack(file, what, 200, 20)
            for clean in (0, 1)
            for file in range(8)
            for what in (1, 2, 3)
        ],
    ]


_MAKERS: Final = {
    "frame": _frames,
    "request": _frames,
    "json_header": lambda: _headers(SerializeType.JSON),
    "binary_header": lambda: _headers(SerializeType.ROCKETMQ),
    "record": _records,
    "batch": _batches,
    "fastjson_text": _texts,
    "body": _bodies,
    "registration": _registrations,
    "compressed": _compressed,
    "properties": lambda: [b"a=b\nlistenPort = 10911\n# no\nk\\u0041:v\\\n  more\n", b"rocketmqHome=/x\nz=\\t\n"],
    "sql": lambda: [text.encode() for text in SQL],
    "trace": _trace,
    "checkpoint": lambda: [encode_checkpoint(Checkpoint()), bytes(4096)],
    "store": _store,
}
