"""Who can reach a server, and under which address clients should: what is decided once, before it listens."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final

from refmq.errors import UsageError
from refmq.net.address import format_address, parse_address

LOOPBACK: Final = "127.0.0.1"

_SOMEWHERE: Final = ("192.0.2.1", 9)
"""An address for documentation: nobody is there, and nothing is sent. The way to it is the default route."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server that listens there."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0]).is_loopback
    except ValueError:
        return False


def is_everywhere(host: str) -> bool:
    """Whether it means all addresses of the machine."""
    try:
        return not host or ipaddress.ip_address(host.strip("[]")).is_unspecified
    except ValueError:
        return False


def advertised_host(listen: str, name_servers: str) -> str:
    """The address that a broker registers when `brokerIP1` does not say it.

    Where it listens, if that is one address. A broker that listens everywhere takes the address from which it reaches
    its first nameserver: clients that ask there most probably come the same way. Without one it is that of the default
    route.
    """
    if not is_everywhere(listen):
        return listen.strip("[]")
    for each in filter(None, map(str.strip, name_servers.split(";"))):
        try:
            host, port = parse_address(each)
        except UsageError:
            continue
        found = _own_address(host, port)
        if found is not None:
            return found
    return _own_address(*_SOMEWHERE) or LOOPBACK


def _own_address(host: str, port: int) -> str | None:
    """The address of this machine on the way to another. A datagram socket that is connected sends nothing."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
        family, kind, protocol, _, address = found[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError:
        return None


def open_door(what: str, host: str, port: int, *, demands: str | None) -> str | None:
    """The line for the operator of a server that anybody can reach and use; None if that is not so.

    `demands` says what is asked of everybody who comes, None if nothing is.
    """
    if is_loopback(host) or demands is not None:
        return None
    return (
        f"OPEN: anybody who reaches {format_address(host, port)} can use and change this {what}; "
        "set aclEnable=true, ask for client certificates, or listen on 127.0.0.1"
    )


def unreachable(listen: str, advertised: str) -> str | None:
    """The line for the operator of a broker that clients will not find where it says it is; None if they may."""
    if is_loopback(listen) and not is_loopback(advertised):
        return (
            f"clients are told {advertised}, but the broker listens on {listen} only: "
            "start it with --host 0.0.0.0 (or that address) if others are to reach it"
        )
    if not is_loopback(listen) and is_loopback(advertised):
        return f"clients elsewhere are told {advertised}, where they will not find the broker: set brokerIP1"
    return None
