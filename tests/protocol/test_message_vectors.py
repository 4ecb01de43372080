"""Messages and batches that RocketMQ 4.9.8 wrote, byte for byte, through the whole of the codec."""

from __future__ import annotations

from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs
from refmq.protocol.headers.messages import TRANSACTION_COMMIT, TRANSACTION_ROLLBACK
from refmq.protocol.names import KEYS, TAGS, WAIT_STORE_MSG_OK
from refmq.protocol.record import TRANSACTION_COMMIT as COMMIT_BITS
from refmq.protocol.record import TRANSACTION_ROLLBACK as ROLLBACK_BITS
from refmq.protocol.record import (
    BatchedMessage,
    Record,
    body_crc,
    concatenate_properties,
    decode_batch,
    decode_properties,
    decode_record,
    encode_batch,
    encode_properties,
    encode_record,
    string_hash,
)

MESSAGE = bytes.fromhex(
    "00000073 daa320a7 3610a686 00000003 00000007 000000000000002a 0000000000001000 00000000 0000018bcfe56800"
    "0a0102030000c350 0000018bcfe56801 0a00000100002a9f 00000000 0000000000000000 00000005 68656c6c6f 02 5431 0011"
    "4b455953016b3102544147530154616741"
)
RECORD = Record(
    topic="T1",
    queue_id=3,
    queue_offset=QueueOffset(42),
    physical_offset=PhysicalOffset(4096),
    flag=7,
    sys_flag=0,
    born_timestamp_ms=TimestampMs(1700000000000),
    born_host=HostAddress(bytes((10, 1, 2, 3)), 50000),
    store_timestamp_ms=TimestampMs(1700000000001),
    store_host=HostAddress(bytes((10, 0, 0, 1)), 10911),
    reconsume_times=0,
    prepared_transaction_offset=0,
    body=b"hello",
    properties=encode_properties({KEYS: "k1", TAGS: "TagA"}),
)
BATCH = bytes.fromhex(
    "00000036 00000000 00000000 00000000 00000005 68656c6c6f 001b"
    "4b455953016b310257414954017472756502544147530154616741"
    "00000020 00000000 00000000 00000001 00000001 42 0009 574149540174727565"
)


def test_the_message_of_java() -> None:
    assert decode_record(MESSAGE) == RECORD
    assert encode_record(RECORD) == MESSAGE
    assert len(MESSAGE) == 115
    assert RECORD.message_id == "0A00000100002A9F0000000000001000"


def test_the_message_with_ipv6_hosts_has_the_length_that_java_gives_it() -> None:
    hosts = [HostAddress(bytes.fromhex(f"20010db800000000000000000000000{last}"), 10911) for last in (1, 2)]
    record = RECORD._replace(born_host=hosts[0], store_host=hosts[1], sys_flag=0x30)
    encoded = encode_record(record)
    assert len(encoded) == 139
    assert decode_record(encoded) == record
    assert record.message_id == "20010DB800000000000000000000000200002A9F0000000000001000"


def test_the_batch_of_java() -> None:
    first = BatchedMessage(0, b"hello", encode_properties({KEYS: "k1", WAIT_STORE_MSG_OK: "true", TAGS: "TagA"}))
    second = BatchedMessage(1, b"B", encode_properties({WAIT_STORE_MSG_OK: "true"}))
    assert decode_batch(BATCH) == (first, second)
    assert encode_batch((first, second)) == BATCH


def test_properties_with_and_without_the_last_separator() -> None:
    """4.9.8 leaves it out, 5.3.3, Go, C++ and Node write it; appending must look first."""
    for written in (b"KEYS\x01k1\x02TAGS\x01TagA", b"KEYS\x01k1\x02TAGS\x01TagA\x02"):
        assert decode_properties(written) == {"KEYS": "k1", "TAGS": "TagA"}
        more = decode_properties(concatenate_properties(written, b"CLUSTER\x01c"))
        assert more == {"KEYS": "k1", "TAGS": "TagA", "CLUSTER": "c"}


def test_checksums_and_hashes_of_java() -> None:
    assert body_crc(b"hello") == 907060870
    assert body_crc(b"a") == 1756872259
    assert body_crc(b"") == 0
    assert string_hash("TagA") == 2598919
    assert string_hash("TagB") == 2598920
    assert string_hash("order-1") == -1207111310


def test_the_values_of_end_transaction_are_the_bits_of_the_sys_flag() -> None:
    assert (TRANSACTION_COMMIT, TRANSACTION_ROLLBACK) == (COMMIT_BITS, ROLLBACK_BITS)
