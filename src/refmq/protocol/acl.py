"""Signing requests, and checking signatures.

A signed request carries these ext fields besides its own:

    field           value
    --------------  ---------------------------------------------------------------------------
    AccessKey       name of the account
    SecurityToken   only for temporary credentials
    OnsChannel      only from the C++ and Node clients; a field like any other
    Signature       base64 of HMAC-SHA1, keyed with the account's secret, of the content

    The content is, without any separators:

    1. the values (not the names) of all ext fields but ``Signature``, in the order of their names, as UTF-8;
    2. the body.

Names are ordered by UTF-16 units, as Java compares strings: upper case, then ``_``, then lower case. The values are the
texts on the wire, so it matters that the header decoder keeps numbers as they were sent.

``_UNIQUE_KEY_QUERY`` is a field on which versions disagree: clients up to 4.9.3 leave it out of the content, newer ones
do not, and a 4.9.8 server always leaves it out. Both contents are accepted here, which lets nothing through that an
upstream server would refuse.
"""

from __future__ import annotations

import base64
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from refmq.protocol._bytes import encode_utf8
from refmq.protocol.command import RemotingCommand

ACCESS_KEY: Final = "AccessKey"
SECURITY_TOKEN: Final = "SecurityToken"
SIGNATURE: Final = "Signature"
ONS_CHANNEL: Final = "OnsChannel"
UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The account that a client signs with."""

    access_key: str
    secret_key: str
    security_token: str | None = None

    def __repr__(self) -> str:
        return f"Credentials(access_key={self.access_key!r}, ...)"  # secrets do not belong in logs


def signed_content(fields: Mapping[str, str], body: bytes, *, leave_out: frozenset[str] = frozenset()) -> bytes:
    """What is signed: the values of ``fields`` in the order of their names, then ``body``."""
    names = sorted((name for name in fields if name != SIGNATURE and name not in leave_out), key=_java_order)
    return b"".join((*(encode_utf8(fields[name], name) for name in names), body))


def signature(content: bytes, secret_key: str) -> str:
    """The text of the ``Signature`` field."""
    return base64.b64encode(hmac.digest(encode_utf8(secret_key, "secret key"), content, "sha1")).decode("ascii")


def sign(command: RemotingCommand, credentials: Credentials) -> RemotingCommand:
    """``command`` with the fields of ``credentials`` and its signature."""
    fields = {**command.fields, ACCESS_KEY: credentials.access_key}
    if credentials.security_token is not None:
        fields[SECURITY_TOKEN] = credentials.security_token
    fields.pop(SIGNATURE, None)
    fields[SIGNATURE] = signature(signed_content(fields, command.body), credentials.secret_key)
    return replace(command, ext_fields=fields)


def signature_is_valid(command: RemotingCommand, secret_key: str) -> bool:
    """Whether the signature of ``command`` was made with ``secret_key``. Compares in constant time."""
    given = command.fields.get(SIGNATURE, "").encode("utf-8", "replace")
    valid = False
    without = (frozenset({UNIQUE_KEY_QUERY}),) if UNIQUE_KEY_QUERY in command.fields else ()
    for left_out in (frozenset[str](), *without):
        content = signed_content(command.fields, command.body, leave_out=left_out)
        valid |= hmac.compare_digest(signature(content, secret_key).encode(), given)
    return valid


def _java_order(name: str) -> bytes:
    return name.encode("utf-16-be", "surrogatepass")
