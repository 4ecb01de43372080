"""Who a client is: its address, its client id, and the ids it gives to messages."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import time
from ipaddress import ip_address
from typing import Final

from refmq.model.ids import TimestampMs
from refmq.protocol.unique_id import unique_id

TAIL_DIGITS: Final = 12
"""Of an id: eight for the time, four for the counter."""

_instances: Final = itertools.count(1)
"""Keeps the clients of one process apart, whatever else they share."""


class _ThisProcess:
    """Asking the system who we are costs as much as encoding a frame, so it is asked once, and after each fork."""

    id: int = os.getpid()

    @classmethod
    def look(cls) -> None:
        cls.id = os.getpid()


if hasattr(os, "register_at_fork"):  # where there is no fork there is nothing to notice
    os.register_at_fork(after_in_child=_ThisProcess.look)


def local_address() -> str:
    """The address of this machine that a packet to somewhere else would carry; loopback when there is none.

    Connecting a datagram socket sends nothing: it only asks the routing table.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address for documentation, which nobody has
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def process_id(loop: asyncio.AbstractEventLoop | None = None) -> int:
    """The number of this process, in a forked child its own. The running loop, or the given one, may have a number of
    its own: the simulated one does."""
    own = getattr(asyncio._get_running_loop() if loop is None else loop, "process_id", None)
    return own() if own is not None else _ThisProcess.id


def new_instance_name(now_ns: int | None = None) -> str:
    """A name that no other client has: process, time, and a counter. In containers the process is 1 everywhere."""
    return f"{process_id()}#{time.time_ns() if now_ns is None else now_ns}.{next(_instances)}"


def client_id(address: str, instance: str, unit: str = "", *, stream: bool = False) -> str:
    """The name under which brokers know a client."""
    parts = [address, instance, *([unit] if unit else []), *(["STREAM"] if stream else [])]
    return "@".join(parts)


class MessageIds:
    """Makes the ids of messages, in Java's form."""

    def __init__(self, address: str, process_hash: int, process_id: int) -> None:
        self._counter = 0
        self._month = (0, 0)
        """When the present month began and when the next one does."""
        sample = unique_id(
            address=ip_address(address).packed,
            process_id=process_id,
            process_hash=process_hash,
            now_ms=TimestampMs(0),
            month_start_ms=TimestampMs(0),
            counter=0,
        )
        self._head = str(sample)[:-TAIL_DIGITS]
        """What all ids of this process begin with: the time and the counter follow."""

    def next(self, now_ms: int) -> str:
        begin, end = self._month
        if not begin <= now_ms < end:
            begin, end = self._month = _month_of(now_ms)
        self._counter = (self._counter + 1) & 0xFFFF
        return f"{self._head}{now_ms - begin:08X}{self._counter:04X}"


def _month_of(now_ms: int) -> tuple[int, int]:
    """When the month of ``now_ms`` begins and ends, in the local time zone."""
    at = time.localtime(now_ms / 1000)
    begin = time.mktime((at.tm_year, at.tm_mon, 1, 0, 0, 0, 0, 0, -1))
    year, month = (at.tm_year + 1, 1) if at.tm_mon == 12 else (at.tm_year, at.tm_mon + 1)
    return int(begin * 1000), int(time.mktime((year, month, 1, 0, 0, 0, 0, 0, -1)) * 1000)
