"""The body of 103 REGISTER_BROKER: as JSON, or as a compressed stream when the header says ``compressed``.

    JSON: ``filterServerList`` [address], ``topicConfigSerializeWrapper`` TopicConfigSerializeWrapper

    Compressed: a zlib stream (best compression) of

    bytes   type   field
    ------  -----  ---------------------------------------------------------------------------------------------
    4 + n   UTF-8  length and DataVersion as JSON
    4       i32    number of topics, and for each of them:
    4 + n   UTF-8    length and text: name, read queues, write queues, perm, filter type, separated by blanks;
                     from 5.3.3 a sixth part, the attributes as JSON
    4 + n   UTF-8  length and filter servers as a JSON array
    4       i32    5.0.0 and later: number of topic mappings, and for each of them:
    4 + n   UTF-8    length and the mapping as JSON, which we do not use

The text form of a topic does not carry ``topicSysFlag`` and ``order``: they take their defaults. The length of a stream
is unknown until it is inflated, so inflating stops at ``INFLATED_MAX``.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from refmq.errors import WireError
from refmq.protocol._bytes import INT32_MAX, ByteReader, encode_utf8
from refmq.protocol.bodies.codec import decode_body, encode_body
from refmq.protocol.bodies.config import DataVersion, TopicConfig, TopicConfigSerializeWrapper, TopicFilterType
from refmq.protocol.fastjson import JsonArray, parse
from refmq.protocol.json_text import quote

INFLATED_MAX: Final = 33_554_432  # 300,000 topics with names of 80 characters
_LENGTH: Final = struct.Struct(">i")
_NUMBER: Final = re.compile("[0-9]{1,10}")


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBrokerBody:
    """What a broker tells a nameserver about itself besides its addresses."""

    topic_config_serialize_wrapper: TopicConfigSerializeWrapper
    filter_server_list: tuple[str, ...] = ()


def encode_register_broker_body(body: RegisterBrokerBody, *, compressed: bool = False) -> bytes:
    """The body in one of its two forms."""
    if not compressed:
        return encode_body(body)
    wrapper = body.topic_config_serialize_wrapper
    parts = [_sized(encode_body(wrapper.data_version)), _LENGTH.pack(len(wrapper.topic_config_table))]
    parts += [_sized(_topic_text(topic)) for topic in wrapper.topic_config_table.values()]
    servers = ",".join(quote(server) for server in body.filter_server_list)
    parts.append(_sized(encode_utf8(f"[{servers}]", "filterServerList")))
    return zlib.compress(b"".join(parts), level=9)


def decode_register_broker_body(data: bytes, *, compressed: bool = False) -> RegisterBrokerBody:
    """The body from one of its two forms. Offsets in errors about a compressed body count inflated bytes."""
    if not compressed:
        return decode_body(RegisterBrokerBody, data)
    reader = ByteReader(_inflated(data))
    version = decode_body(DataVersion, _taken(reader, "dataVersion"))
    topics: dict[str, TopicConfig] = {}
    for _ in range(_count(reader, "topicCount")):
        topic = _topic(reader)
        topics[topic.topic_name] = topic
    servers = _servers(reader)
    if reader.remaining:  # the mappings of 5.x
        for _ in range(_count(reader, "mappingCount")):
            _taken(reader, "mapping")
    if reader.remaining:
        raise reader.fail("body", "ended", f"{reader.remaining} bytes more")
    wrapper = TopicConfigSerializeWrapper(data_version=version, topic_config_table=topics)
    return RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=servers)


def _sized(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


def _topic_text(topic: TopicConfig) -> bytes:
    numbers = f"{topic.read_queue_nums} {topic.write_queue_nums} {topic.perm}"
    text = f"{topic.topic_name} {numbers} {topic.topic_filter_type.name}"
    return encode_utf8(text, "topic")


def _inflated(data: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(data, INFLATED_MAX)
    except zlib.error as error:
        raise WireError("body", 0, "a zlib stream", f"one with an error ({error})") from None
    if not inflater.eof:
        most = len(inflated) >= INFLATED_MAX
        found = f"more than {INFLATED_MAX} bytes inflated" if most else "cut off"
        raise WireError("body", len(data), "a whole zlib stream", found)
    return inflated


def _count(reader: ByteReader, field: str) -> int:
    """A number of entries of at least four bytes each: no more than there is room for."""
    at = reader.position
    count = reader.int32(field)
    if not 0 <= count <= reader.remaining // 4:
        raise reader.fail(field, f"0 to {reader.remaining // 4}", count, at=at)
    return count


def _taken(reader: ByteReader, field: str) -> bytes:
    return reader.take(reader.length(4, f"{field} length", INT32_MAX), field)


def _topic(reader: ByteReader) -> TopicConfig:
    length = reader.length(4, "topic length", INT32_MAX)
    at = reader.position
    words = reader.text(length, "topic").split(" ", 5)
    numbers = [int(word) for word in words[1:4] if _NUMBER.fullmatch(word)]
    kind = TopicFilterType.__members__.get(words[4]) if len(words) > 4 else None
    if not words[0] or len(numbers) < 3 or max(numbers) > INT32_MAX or kind is None:
        raise reader.fail("topic", "name, three numbers and a filter type", repr(" ".join(words)[:60]), at=at)
    return TopicConfig(
        topic_name=words[0],
        read_queue_nums=numbers[0],
        write_queue_nums=numbers[1],
        perm=numbers[2],
        topic_filter_type=kind,
        attributes=_attributes(words[5]) if len(words) == 6 else None,
    )


def _attributes(text: str) -> Mapping[str, str]:
    return decode_body(_Attributes, b'{"attributes":' + text.encode() + b"}").attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class _Attributes:
    attributes: Mapping[str, str]


def _servers(reader: ByteReader) -> tuple[str, ...]:
    at = reader.position
    document = parse(_taken(reader, "filterServerList"), base=at + 4)
    if not isinstance(document, JsonArray):
        raise reader.fail("filterServerList", "an array", "something else", at=at)
    servers = []
    for item in document.items:
        if not isinstance(item, str):
            raise reader.fail("filterServerList", "an array of strings", "something else", at=at)
        servers.append(item)
    return tuple(servers)
