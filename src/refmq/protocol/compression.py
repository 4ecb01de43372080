"""Compressed message bodies, and the bits of a message's sys flag that say how.

    bits (of 0x700)  type   bytes of the body
    ---------------  -----  ------------------------------------------------------------
    0x000            ZLIB   zlib stream (RFC 1950); clients without types in their flags
    0x100            LZ4    LZ4 frame
    0x200            ZSTD   zstd frame
    0x300            ZLIB   zlib stream

    The bits mean something only together with 0x001, which says that the body is compressed at all.

Only producers compress and only consumers decompress: a broker keeps body, bits and CRC as they came. LZ4 and zstd need
the extra ``compression``. The Go, C++ and Node clients know zlib only, so that is what a producer should use.

Nobody knows the length of a compressed body before it is inflated, so inflating stops at a limit.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from typing import Final

from refmq.errors import MissingTool, WireError

SYS_FLAG_COMPRESSED: Final = 0x1
SYS_FLAG_COMPRESSION_TYPE: Final = 0x700
COMPRESSION_LEVEL: Final = 5  # rocketmq.message.compressLevel, 4.9.8
COMPRESS_OVER_BYTES: Final = 4096  # compressMsgBodyOverHowmuch, 4.9.8
DECOMPRESSED_MAX: Final = 67_108_864  # upstream's producers refuse bodies above 4 MiB; some raise that limit

_ZSTD_PIECE_BYTES: Final = 1024
_REMEDY: Final = "Install it with: pip install 'refmq[compression]'"


class CompressionType(IntEnum):
    """The values of the type bits that we write."""

    LZ4 = 0x100
    ZSTD = 0x200
    ZLIB = 0x300


def compression_type(sys_flag: int) -> CompressionType:
    """How a body with this flag is compressed, if it is. ``WireError`` for an undefined type."""
    bits = sys_flag & SYS_FLAG_COMPRESSION_TYPE
    if bits == 0:
        return CompressionType.ZLIB
    try:
        return CompressionType(bits)
    except ValueError:
        raise WireError("sysFlag", 0, "a compression type of 0x100, 0x200 or 0x300", f"{bits:#x}") from None


def compress(
    body: bytes, sys_flag: int, kind: CompressionType = CompressionType.ZLIB, *, level: int = COMPRESSION_LEVEL
) -> tuple[bytes, int]:
    """The compressed body and the flag that says so. The arguments are unchanged, so a retry can start from them."""
    match kind:
        case CompressionType.ZLIB:
            compressed = zlib.compress(body, level)
        case CompressionType.LZ4:
            compressed = _lz4_compress(body, level)
        case CompressionType.ZSTD:
            compressed = _zstd_compress(body, level)
    return compressed, sys_flag & ~SYS_FLAG_COMPRESSION_TYPE | SYS_FLAG_COMPRESSED | kind


def decompress(body: bytes, sys_flag: int, *, limit: int = DECOMPRESSED_MAX) -> bytes:
    """The body as it was before a producer compressed it; itself when the flag says that it was not."""
    assert limit >= 0
    if not sys_flag & SYS_FLAG_COMPRESSED:
        return body
    match compression_type(sys_flag):
        case CompressionType.ZLIB:
            return _zlib_decompress(body, limit)
        case CompressionType.LZ4:
            return _lz4_decompress(body, limit)
        case CompressionType.ZSTD:
            return _zstd_decompress(body, limit)


def _bad(kind: str, found: str) -> WireError:
    return WireError("body", 0, f"a whole {kind}", found)


def _too_large(limit: int) -> WireError:
    return WireError("body", 0, f"at most {limit} bytes when decompressed", "more")


def _zlib_decompress(body: bytes, limit: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        inflated = inflater.decompress(body, limit + 1)
    except zlib.error as error:
        raise _bad("zlib stream", str(error)) from None
    if len(inflated) > limit:
        raise _too_large(limit)
    if not inflater.eof:
        raise _bad("zlib stream", "cut off")
    return inflated


def _lz4_compress(body: bytes, level: int) -> bytes:
    try:
        from lz4 import frame
    except ImportError:
        raise MissingTool("The package lz4", _REMEDY) from None
    return bytes(frame.compress(body, compression_level=level))


def _lz4_decompress(body: bytes, limit: int) -> bytes:
    try:
        from lz4 import frame
    except ImportError:
        raise MissingTool("The package lz4", _REMEDY) from None
    decompressor = frame.LZ4FrameDecompressor()
    try:
        inflated = bytes(decompressor.decompress(body, max_length=limit + 1))
    except RuntimeError as error:
        raise _bad("LZ4 frame", str(error)) from None
    if len(inflated) > limit:
        raise _too_large(limit)
    if not decompressor.eof:
        raise _bad("LZ4 frame", "cut off")
    return inflated


def _zstd_compress(body: bytes, level: int) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise MissingTool("The package zstandard", _REMEDY) from None
    return bytes(zstandard.ZstdCompressor(level=level).compress(body))


def _zstd_decompress(body: bytes, limit: int) -> bytes:
    try:
        import zstandard
    except ImportError:
        raise MissingTool("The package zstandard", _REMEDY) from None
    # In pieces, because there is no limit to what one call gives: a block of 4 bytes can stand for 128 KiB, so a piece
    # overshoots the limit by 32 MiB at most.
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    pieces, size = [], 0
    for start in range(0, len(body), _ZSTD_PIECE_BYTES):
        try:
            pieces.append(decompressor.decompress(body[start : start + _ZSTD_PIECE_BYTES]))
        except zstandard.ZstdError as error:
            raise _bad("zstd frame", str(error)) from None
        size += len(pieces[-1])
        if size > limit:
            raise _too_large(limit)
        if decompressor.eof:
            return b"".join(pieces)
    raise _bad("zstd frame", "cut off")
