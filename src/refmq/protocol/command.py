"""The remoting command: one request or one response, whatever its bytes look like.

    field           type          range   meaning
    --------------  ------------  ------  --------------------------------------------------------------
    code            int           i32     request code, or response code when it is a response
    opaque          int           i32     chosen by the sender of a request; the response repeats it
    flag            int           i32     bit 0: this is a response; bit 1: one-way, never answered
    language        LanguageCode  u8      what the sender is written in
    version         int           i32     version of the sender, see ``versions``
    remark          str or None           text for people, mostly the reason of an error
    ext_fields      map or None           the fields of the header classes in ``headers``, all of them strings
    body            bytes                 may be empty, which the protocol does not distinguish from absent
    serialize_type  SerializeType u8      how the header is (to be) written

An absent map and an empty one are different in a JSON header and the same in a binary one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Final

from refmq.protocol.versions import V4_9_8

RESPONSE_FLAG: Final = 0x1
ONEWAY_FLAG: Final = 0x2

_NO_FIELDS: Final[Mapping[str, str]] = MappingProxyType({})


class SerializeType(IntEnum):
    """How a header is written; the first byte of the second word of a frame."""

    JSON = 0
    ROCKETMQ = 1


class LanguageCode(IntEnum):
    """What a peer says it is written in: the byte in binary headers, the name in JSON.

    A peer may name a language that is not in this list; it is read as ``OTHER``. (Java reads it as null.)
    """

    JAVA = 0
    CPP = 1
    DOTNET = 2
    PYTHON = 3
    DELPHI = 4
    ERLANG = 5
    RUBY = 6
    OTHER = 7
    HTTP = 8
    GO = 9
    PHP = 10
    OMS = 11
    RUST = 12
    NODE_JS = 13


@dataclass(frozen=True, slots=True)
class RemotingCommand:
    """One request or response. The module's table says what each field is."""

    code: int
    opaque: int = 0
    flag: int = 0
    language: LanguageCode = LanguageCode.PYTHON
    version: int = V4_9_8
    remark: str | None = None
    ext_fields: Mapping[str, str] | None = None
    body: bytes = b""
    serialize_type: SerializeType = SerializeType.JSON
    header: bytes = field(default=b"", compare=False, repr=False)
    """The header as it was received, for errors that say where a field is. Empty in a command we made."""

    @property
    def is_response(self) -> bool:
        return bool(self.flag & RESPONSE_FLAG)

    @property
    def is_oneway(self) -> bool:
        """Whether this request must not be answered, not even with an error."""
        return bool(self.flag & ONEWAY_FLAG)

    @property
    def fields(self) -> Mapping[str, str]:
        """The ext fields, empty when there are none."""
        return _NO_FIELDS if self.ext_fields is None else self.ext_fields

    def with_opaque(self, opaque: int) -> RemotingCommand:
        """This command under another request id: what a connection does just before it sends."""
        return replace(self, opaque=opaque)


def request(
    code: int,
    fields: Mapping[str, str] | None = None,
    body: bytes = b"",
    *,
    opaque: int = 0,
    remark: str | None = None,
    version: int = V4_9_8,
    serialize_type: SerializeType = SerializeType.JSON,
) -> RemotingCommand:
    """A request that wants an answer. ``fields`` usually comes from ``headers.encode_header``."""
    return RemotingCommand(
        code=code,
        opaque=opaque,
        remark=remark,
        version=version,
        ext_fields=fields,
        body=body,
        serialize_type=serialize_type,
    )


def oneway(
    code: int,
    fields: Mapping[str, str] | None = None,
    body: bytes = b"",
    *,
    opaque: int = 0,
    remark: str | None = None,
    version: int = V4_9_8,
    serialize_type: SerializeType = SerializeType.JSON,
) -> RemotingCommand:
    """A request that must not be answered."""
    command = request(code, fields, body, opaque=opaque, remark=remark, version=version, serialize_type=serialize_type)
    return replace(command, flag=ONEWAY_FLAG)


def response(
    to: RemotingCommand,
    code: int,
    fields: Mapping[str, str] | None = None,
    body: bytes = b"",
    *,
    remark: str | None = None,
    version: int = V4_9_8,
    serialize_type: SerializeType | None = None,
) -> RemotingCommand:
    """The answer to ``to``: same opaque, response bit set, and the serialization of the request.

    Copying the serialization is what a 4.9.8 processor does; a 5.3.3 server answers in its own configured type, and
    so do the transport errors and long-poll wake-ups of both. Every client decodes by the type byte, except those
    that know JSON only, and they get JSON here because they sent it. ``serialize_type`` overrides the choice.
    """
    return RemotingCommand(
        code=code,
        opaque=to.opaque,
        flag=RESPONSE_FLAG,
        version=version,
        remark=remark,
        ext_fields=fields,
        body=body,
        serialize_type=to.serialize_type if serialize_type is None else serialize_type,
    )
