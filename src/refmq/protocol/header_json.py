"""The JSON header (serialize type 0).

    key                       written                read
    ------------------------  ---------------------  ------------------------------------------------------------
    code                      number                 number or numeric string; 0 when absent
    extFields                 object of strings      object; numbers and booleans become their text, nulls vanish
    flag                      number                 number or numeric string; 0 when absent
    language                  name                   name or number; JAVA when absent; unknown names become OTHER
    opaque                    number                 number or numeric string; 0 when absent
    remark                    string, if any         string or null
    serializeTypeCurrentRPC   "JSON"                 ignored: the frame has already said it
    version                   number                 number or numeric string; 0 when absent

We write what Java writes: UTF-8, the keys in this order, no white space, nothing for null, the escapes of
``json_text``. The values in extFields are strings without exception, because the Go client drops a frame with any
other and the C++ client takes them for zero. We read any order, unknown keys and white space (C++ ends its header with
a line feed). The C++ and Node clients send numbers and booleans in extFields; their text is kept as it was
sent, because it is what they signed.
"""

from __future__ import annotations

import json
import re
from typing import Final

from refmq.errors import WireError
from refmq.protocol._bytes import INT32_MAX, INT32_MIN, check_range, encode_utf8
from refmq.protocol.command import LanguageCode, RemotingCommand
from refmq.protocol.json_text import quote

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,10}")
_HALF_PAIR: Final = re.compile("[\ud800-\udfff]")
_SURROGATE_ESCAPE: Final = re.compile(rb"\\u[dD][89a-fA-F]")  # without one of these there is no half of a pair
_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[][{}:,]|[^][{}:,"\s]+', re.DOTALL)
_LANGUAGE_NAMES: Final = {language.name: language for language in LanguageCode}


class _Number(str):
    """The text of a number, kept as it was sent."""

    __slots__ = ()


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} is not JSON")


_DECODER: Final = json.JSONDecoder(parse_int=_Number, parse_float=_Number, parse_constant=_no_constant, strict=False)


def encode_json_header(command: RemotingCommand) -> bytes:
    """The header of ``command`` as Java writes it."""
    parts = [f'{{"code":{check_range(command.code, INT32_MIN, INT32_MAX, "code")}']
    if command.ext_fields is not None:
        # Names are letters and few; most values are letters and digits, which need no second look.
        fields = ",".join(
            [
                f'"{key}":"{value}"' if key.isalnum() and value.isalnum() else f"{quote(key)}:{quote(value)}"
                for key, value in command.ext_fields.items()
            ]
        )
        parts.append(f'"extFields":{{{fields}}}')
    parts.append(f'"flag":{check_range(command.flag, INT32_MIN, INT32_MAX, "flag")}')
    parts.append(f'"language":"{command.language.name}"')
    parts.append(f'"opaque":{check_range(command.opaque, INT32_MIN, INT32_MAX, "opaque")}')
    if command.remark is not None:
        parts.append(f'"remark":{quote(command.remark)}')
    parts.append('"serializeTypeCurrentRPC":"JSON"')
    parts.append(f'"version":{check_range(command.version, INT32_MIN, INT32_MAX, "version")}}}')
    return encode_utf8(",".join(parts), "header")


def decode_json_header(header: bytes, *, base: int = 0, body: bytes = b"") -> RemotingCommand:
    """The command that ``header`` stands for, with ``body``. ``base`` is the offset of the header's first byte."""
    document = _parse(header, base)
    if not isinstance(document, dict):
        raise WireError("header", base, "a JSON object", _shown(document))
    return RemotingCommand(
        code=_integer(document, "code", header, base),
        opaque=_integer(document, "opaque", header, base),
        flag=_integer(document, "flag", header, base),
        language=_language(document.get("language"), header, base),
        version=_integer(document, "version", header, base),
        remark=_remark(document.get("remark"), header, base),
        ext_fields=_ext_fields(document.get("extFields"), header, base),
        body=body,
        header=header,
    )


def json_position(header: bytes, name: str) -> int | None:
    """Where the value of an ext field starts in a readable header; of several with the name, the last."""
    return _value_position(header, ("extFields", name))


def _value_position(header: bytes, path: tuple[str, ...]) -> int | None:
    """Where the value under these nested keys starts. Only for errors: it reads all tokens."""
    keys: list[str | None] = []  # of each object or array around the present token, the key that it is the value of
    found, waits_for_value, last_text = None, False, ""
    for token in _TOKEN.finditer(header):
        if waits_for_value and tuple(keys) == path:
            found = token.start()
        waits_for_value = False
        match token[0][:1]:
            case b'"':
                last_text = json.loads(token[0], strict=False)
            case b"{" | b"[":
                keys.append(None)
            case b"}" | b"]" if keys:
                keys.pop()
            case b":" if keys:
                keys[-1] = last_text
                waits_for_value = True
            case b"," if keys:
                keys[-1] = None
    return found


def _parse(header: bytes, base: int) -> object:
    try:
        text = header.decode()
    except UnicodeDecodeError as error:
        raise WireError("header", base + error.start, "UTF-8 text", "an invalid byte") from None
    try:
        document: object = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise WireError("header", base + len(text[: error.pos].encode()), "JSON", f"text with {error.msg}") from None
    except (ValueError, RecursionError) as error:
        found = "JSON nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise WireError("header", base, "JSON", found) from None
    return document


def _position(header: bytes, base: int, *path: str) -> int:
    """Where the value under ``path`` stands; the start of the header if that cannot be said."""
    return base + (_value_position(header, path) or 0)


def _integer(document: dict[str, object], key: str, header: bytes, base: int) -> int:
    value = document.get(key)
    if value is None:
        return 0
    if isinstance(value, str) and _INTEGER.fullmatch(value):
        number = int(value)
        if INT32_MIN <= number <= INT32_MAX:
            return number
    raise WireError(key, _position(header, base, key), "a 32-bit integer", _shown(value))


def _language(value: object, header: bytes, base: int) -> LanguageCode:
    if value is None:
        return LanguageCode.JAVA
    if isinstance(value, _Number):
        if value.isdecimal() and len(value) <= 3 and int(value) <= LanguageCode.NODE_JS:
            return LanguageCode(int(value))
    elif isinstance(value, str):
        return _LANGUAGE_NAMES.get(value, LanguageCode.OTHER)
    expected = f"a name or a number from 0 to {int(LanguageCode.NODE_JS)}"
    raise WireError("language", _position(header, base, "language"), expected, _shown(value))


def _remark(value: object, header: bytes, base: int) -> str | None:
    if value is None:
        return None
    if isinstance(value, str) and not isinstance(value, _Number):
        return _whole(value, header, base, "remark")
    raise WireError("remark", _position(header, base, "remark"), "a string or null", _shown(value))


def _ext_fields(value: object, header: bytes, base: int) -> dict[str, str] | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise WireError("extFields", _position(header, base, "extFields"), "an object or null", _shown(value))
    fields: dict[str, str] = {}
    may_be_halved = _SURROGATE_ESCAPE.search(header) is not None
    for key, item in value.items():
        if may_be_halved and _HALF_PAIR.search(key):
            at = _position(header, base, "extFields", key)
            raise WireError("extFields key", at, "text of whole characters", "half a surrogate pair")
        if isinstance(item, str):
            text = str(item)
            fields[key] = _whole(text, header, base, "extFields", key) if may_be_halved else text
        elif isinstance(item, bool):
            fields[key] = "true" if item else "false"
        elif item is not None:
            at = _position(header, base, "extFields", key)
            raise WireError(f"extFields.{key}", at, "a string, a number or a boolean", _shown(item))
    return fields


def _whole(text: str, header: bytes, base: int, *path: str) -> str:
    """``text``, unless an escape left half a surrogate pair in it, which is not a character and has no UTF-8."""
    if _HALF_PAIR.search(text):
        at = _position(header, base, *path)
        raise WireError(".".join(path), at, "text of whole characters", "half a surrogate pair")
    return text


def _shown(value: object) -> str:
    """``value`` for an error message: short, whatever a peer has sent."""
    match value:
        case dict():
            return "an object"
        case list():
            return "an array"
        case _Number():
            return str(value[:20])
        case _:
            return repr(value)[:40]
