"""Frames and bodies that the classes of RocketMQ wrote: they decode to what went in, and encode to the same bytes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from refmq.protocol import bodies, headers
from refmq.protocol.bodies import JsonStyle, decode_body, encode_body
from refmq.protocol.command import LanguageCode, SerializeType
from refmq.protocol.frame import decode, encode
from refmq.protocol.headers import decode_header, encode_header
from refmq.protocol.headers.codec import header_plan
from tests.protocol.samples import sample_body, sample_header

GOLDEN = Path(__file__).parent.parent / "golden" / "wire"
LINES: list[tuple[str, dict[str, str]]] = [
    (version, json.loads(line))
    for version in ("4.9.8", "5.3.3")
    for line in (GOLDEN / f"{version}.jsonl").read_text().splitlines()
]
FRAMES = [(version, line) for version, line in LINES if "header" in line]
BODIES = [(version, line) for version, line in LINES if "body" in line]


def title(value: object) -> str:
    if isinstance(value, dict):
        return "-".join(value[key] for key in ("header", "body", "serialization") if key in value)
    return str(value)


@pytest.mark.parametrize(("version", "line"), FRAMES, ids=title)
def test_frames_of_java_encode_to_the_same_bytes(version: str, line: dict[str, str]) -> None:
    raw = bytes.fromhex(line["frame"])
    command = decode(raw)
    assert encode(command) == raw
    assert command.code == 7
    assert command.language is LanguageCode.JAVA
    assert command.serialize_type is SerializeType[line["serialization"]]


@pytest.mark.parametrize(("version", "line"), FRAMES, ids=title)
def test_headers_of_java_hold_what_went_in(version: str, line: dict[str, str]) -> None:
    header_type: Any = getattr(headers, line["header"])
    command = decode(bytes.fromhex(line["frame"]))
    header = decode_header(header_type, command)
    sample = sample_header(header_type)
    known = [plan.name for plan in header_plan(header_type) if plan.wire_name in command.fields]
    for name in known:
        assert getattr(header, name) == getattr(sample, name), name
    if version == "5.3.3" and line["header"] != "DeleteSubscriptionGroupRequest":
        # The newest version knows every field but those that are added outside the classes.
        outside = {"region", "trace_on", "unique_key_query"}
        assert {plan.name for plan in header_plan(header_type)} - set(known) <= outside
    # Nothing is in the frame that our class would not write.
    assert set(command.fields) <= {*encode_header(sample), "nsd", "ns", "oway", "bname", "lo"}


@pytest.mark.parametrize(("version", "line"), BODIES, ids=title)
def test_bodies_of_java_hold_what_went_in(version: str, line: dict[str, str]) -> None:
    body_type: Any = getattr(bodies, line["body"])
    body = decode_body(body_type, line["json"].encode())
    assert lost(sample_body(body_type), body, version) == []


@pytest.mark.parametrize("line", [line for version, line in BODIES if version == "4.9.8"], ids=title)
def test_bodies_of_4_9_8_encode_to_the_same_bytes(line: dict[str, str]) -> None:
    """5.3.3 adds members that we do not use, so its bodies come out shorter."""
    body = decode_body(getattr(bodies, line["body"]), line["json"].encode())
    assert encode_body(body, JsonStyle.FASTJSON).decode() == line["json"]


def lost(sample: Any, body: Any, version: str) -> list[str]:
    """The fields that were set and are not there; 4.9.8 may drop those that came later."""
    if dataclasses.is_dataclass(sample) and body is not None:
        return [
            f"{field.name}.{name}".rstrip(".")
            for field in dataclasses.fields(sample)
            for name in lost(getattr(sample, field.name), getattr(body, field.name), version)
        ]
    if isinstance(sample, tuple) and body:
        return lost(sample[0], body[0], version)
    if isinstance(sample, dict) and body:
        assert list(sample) == list(body)
        return lost(next(iter(sample.values())), next(iter(body.values())), version)
    if sample is None or (body is None and version == "4.9.8"):
        return []
    return [] if sample == body else [""]


def test_every_class_is_among_the_golden_ones() -> None:
    recorded = {line["header"] for _, line in FRAMES} | {"HeartbeatResponse"}
    assert recorded == {
        name
        for name, value in vars(headers).items()
        if dataclasses.is_dataclass(value) and name.endswith(("Request", "Response"))
    }
    assert len({line["body"] for _, line in BODIES}) == 40


def test_the_comparison_catches_a_lost_field() -> None:
    sample = sample_body(bodies.DataVersion)
    assert lost(sample, sample, "5.3.3") == []
    assert lost(sample, dataclasses.replace(sample, counter=0), "5.3.3") == ["counter"]
    assert lost(sample, dataclasses.replace(sample, state_version=None), "5.3.3") == ["state_version"]
    assert lost(sample, dataclasses.replace(sample, state_version=None), "4.9.8") == []
