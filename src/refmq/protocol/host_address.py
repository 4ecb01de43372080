"""Addresses between text and the bytes that records hold."""

from __future__ import annotations

from functools import lru_cache
from ipaddress import ip_address

from refmq.model.ids import HostAddress

_NOWHERE = HostAddress(bytes(4), 0)


@lru_cache(maxsize=4096)
def host_of(text: str) -> HostAddress:
    """The address in `host:port`; 0.0.0.0:0 when the host is a name that only a resolver would know."""
    host, _, port = text.rpartition(":")
    try:
        return HostAddress(ip_address(host.strip("[]")).packed, int(port))
    except ValueError:
        return _NOWHERE


def is_ip(host: str) -> bool:
    """Whether a host is an address and not a name."""
    try:
        ip_address(host.strip("[]"))
    except ValueError:
        return False
    return True


def host_text(address: HostAddress) -> str:
    """`host:port`, as clients see it."""
    ip = ip_address(address.ip)
    return f"[{ip}]:{address.port}" if ip.version == 6 else f"{ip}:{address.port}"
