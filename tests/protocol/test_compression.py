from __future__ import annotations

import sys
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.errors import MissingTool, WireError
from refmq.protocol import compression
from refmq.protocol.compression import CompressionType, compress, compression_type, decompress

KINDS = list(CompressionType)


def round_trips(body: bytes, sys_flag: int, kind: CompressionType) -> None:
    compressed, flag = compress(body, sys_flag, kind)
    assert flag & 0x1
    assert flag & 0x700 == kind
    assert flag & ~0x701 == sys_flag & ~0x701
    assert decompress(compressed, flag) == body


@pytest.mark.parametrize("kind", KINDS)
@given(body=st.binary(max_size=300), sys_flag=st.integers(0, 0xFFF))
def test_decompressing_what_was_compressed_gives_it_back(kind: CompressionType, body: bytes, sys_flag: int) -> None:
    round_trips(body, sys_flag, kind)


def test_the_round_trip_catches_a_flag_that_names_another_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "SYS_FLAG_COMPRESSION_TYPE", 0)
    with pytest.raises((AssertionError, WireError)):
        round_trips(b"body", 0x200, CompressionType.LZ4)


def test_bytes_that_java_clients_send() -> None:
    """Level 5 gives the header 78 5E; a flag without type bits means zlib too."""
    compressed, flag = compress(b"a" * 5000, 0)
    assert compressed[:2] == b"\x78\x5e"
    assert flag == 0x301
    assert decompress(compressed, 0x1) == decompress(compressed, 0x301) == b"a" * 5000


def test_a_body_without_the_flag_is_left_alone() -> None:
    assert decompress(b"plain", 0x300) == b"plain"


def test_an_unknown_type_is_an_error() -> None:
    for bits in (0x400, 0x700):
        with pytest.raises(WireError, match="sysFlag"):
            decompress(b"", bits | 0x1)
    assert compression_type(0) is CompressionType.ZLIB


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_that_is_cut_or_damaged_is_an_error(kind: CompressionType) -> None:
    compressed, flag = compress(b"hello " * 1000, 0, kind)
    for bad in (b"", compressed[:-3], b"\x00" + compressed, b"hello"):
        with pytest.raises(WireError, match="body at byte offset 0 should be a whole"):
            decompress(bad, flag)


@pytest.mark.parametrize("kind", KINDS)
def test_inflating_stops_at_the_limit(kind: CompressionType) -> None:
    compressed, flag = compress(bytes(100_000), 0, kind)
    assert len(decompress(compressed, flag, limit=100_000)) == 100_000
    with pytest.raises(WireError, match="at most 99999 bytes"):
        decompress(compressed, flag, limit=99_999)


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.binary(max_size=60))
def test_any_bytes_are_a_body_or_an_error(kind: CompressionType, data: bytes) -> None:
    try:
        found = decompress(data, kind | 0x1, limit=1000)
    except WireError:
        return
    assert len(found) <= 1000


@pytest.mark.parametrize(("kind", "module"), [(CompressionType.LZ4, "lz4"), (CompressionType.ZSTD, "zstandard")])
def test_without_the_package_the_error_says_how_to_get_it(
    kind: CompressionType, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    for attempt in (lambda: compress(b"x", 0, kind), lambda: decompress(b"x", kind | 1)):
        with pytest.raises(MissingTool, match=r"refmq\[compression\]"):
            attempt()


def test_compressing_does_not_change_what_it_was_given() -> None:
    """A retry that compresses what is compressed already once reached consumers of 4.2.0 and before."""
    body = b"a" * 5000
    first = compress(body, 0)
    assert compress(body, 0) == first
    assert zlib.decompress(first[0]) == body
