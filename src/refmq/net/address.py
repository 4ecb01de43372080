"""Addresses as RocketMQ writes them: ``host:port``, and ``[v6]:port`` for IPv6."""

from __future__ import annotations

from refmq.errors import UsageError


def parse_address(text: str) -> tuple[str, int]:
    """Splits ``host:port``. ``UsageError`` if it is not of that form."""
    host, colon, port = text.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise UsageError(f"An address is host:port with a port from 1 to 65535, not {text!r}.")
    return host, int(port)


def format_address(host: str, port: int) -> str:
    """The text of an address."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def format_peer(name: object) -> str:
    """The text of a transport's ``peername`` or ``sockname``."""
    if isinstance(name, tuple) and len(name) >= 2:
        return format_address(str(name[0]), int(name[1]))
    return str(name) if name else "unknown"
