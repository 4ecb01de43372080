"""Somebody who connects to a broker or a nameserver and does not speak the protocol, or speaks it badly.

Nothing that a stranger does may be noticed by anybody else. What it is answered nobody looks at.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import Final

from refmq.net.address import parse_address
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import request, response
from refmq.protocol.frame import encode

LINGER_S: Final = 0.2
"""How long a stranger stays after its last byte."""
MANY: Final = 300


def _garbage(source: random.Random) -> bytes:
    return source.randbytes(200)


def _endless(source: random.Random) -> bytes:
    """A length that nobody sends."""
    return (0x7FFF_FFF0).to_bytes(4, "big") + source.randbytes(20)


def _negative(source: random.Random) -> bytes:
    return (0xFFFF_FF00).to_bytes(4, "big") + source.randbytes(20)


def _half(source: random.Random) -> bytes:
    """A frame that never ends."""
    return _heartbeat(1)[:-5]


def _bad_header(source: random.Random) -> bytes:
    header = b'{"code":34,"opaque":'
    return (4 + len(header)).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header


def _header_behind_the_end(source: random.Random) -> bytes:
    return (8).to_bytes(4, "big") + (4_000).to_bytes(4, "big") + b"{}{}"


def _answers(source: random.Random) -> bytes:
    """Answers to questions that nobody asked."""
    return b"".join(encode(response(request(RequestCode.HEART_BEAT, opaque=number), 0)) for number in range(20))


def _many(source: random.Random) -> bytes:
    """More requests than anybody waits for, and their answers are never read."""
    return b"".join(_heartbeat(number) for number in range(MANY))


def _same_number(source: random.Random) -> bytes:
    """Two requests with one number."""
    return _heartbeat(5) * 2


def _heartbeat(opaque: int) -> bytes:
    return encode(request(RequestCode.GET_BROKER_CONFIG, opaque=opaque))


WAYS: Final = (
    _garbage,
    _endless,
    _negative,
    _half,
    _bad_header,
    _header_behind_the_end,
    _answers,
    _many,
    _same_number,
)


async def intrude(address: str, way: int, seed: int) -> None:
    """Connects, writes, stays for a moment without reading, and goes."""
    host, port = parse_address(address)
    source = random.Random(seed)
    with contextlib.suppress(OSError, asyncio.TimeoutError):
        async with asyncio.timeout(LINGER_S * 10):
            _, writer = await asyncio.open_connection(host, port)
            writer.write(WAYS[way % len(WAYS)](source))
            await asyncio.sleep(LINGER_S)
            writer.close()
