"""Java properties: the text of broker.conf and namesrv.conf, and of the bodies of 25, 26, 318 and 319.

Reading follows java.util.Properties:

    line                  means
    --------------------  ------------------------------------------------------------------------------------------
    ``# text, ! text``    a comment, after any blanks
    ``key = value``       also with ``:`` or just blanks between them; blanks around the separator do not count
    ``text \\``            an odd number of backslashes at the end: the next line follows, without its leading blanks
    ``\\t \\n \\r \\f``      the control characters; ``\\uXXXX`` a UTF-16 unit; ``\\x`` is x for every other x

A key that occurs twice has its last value. Writing gives ``key=value`` and a line feed, as upstream's MixAll. Unlike
MixAll it escapes what would be read as something else: backslashes, a blank in front of a value, separators in keys. A
line break cannot be written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from refmq.errors import UsageError, WireError

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE_END = re.compile("\r\n|\r|\n")
_SPECIAL = re.compile(r"[\\=: \t\f#!]")
_ESCAPED = r"\\\g<0>"
_UNIT = re.compile("[0-9a-fA-F]{4}")


def parse_properties(text: str) -> dict[str, str]:
    """The keys and values of ``text``. ``WireError`` for a broken ``\\u`` escape; its offset counts characters."""
    found: dict[str, str] = {}
    for offset, line in _logical_lines(text):
        key, value = _split(line)
        found[_unescape(key, offset)] = _unescape(value, offset)
    return found


def format_properties(settings: Mapping[str, str]) -> str:
    """The text of ``settings``, in their order."""
    lines = []
    for key, value in settings.items():
        if any(_LINE_END.search(part) for part in (key, value)):
            raise UsageError(f"The setting {key!r} has a line break, which a properties file cannot hold.")
        lines.append(f"{_SPECIAL.sub(_ESCAPED, key)}={_escaped_value(value)}\n")
    return "".join(lines)


def _escaped_value(value: str) -> str:
    escaped = value.replace("\\", "\\\\")
    return "\\" + escaped if escaped[:1] and escaped[0] in _BLANKS else escaped


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line that is neither blank nor a comment, with those that continue it, and where it begins."""
    offset = 0
    pending: list[str] = []
    begin = 0
    for match in [*_LINE_END.finditer(text), None]:
        end = match.start() if match is not None else len(text)
        natural = text[offset:end].lstrip(_BLANKS)
        start = offset
        offset = match.end() if match is not None else len(text)
        if not pending:
            if not natural or natural[0] in "#!":
                continue
            begin = start
        if (len(natural) - len(natural.rstrip("\\"))) % 2 == 1:
            pending.append(natural[:-1])
            continue
        line = "".join([*pending, natural])
        pending = []
        if line:
            yield begin, line
    if any(pending):
        yield begin, "".join(pending)


def _split(line: str) -> tuple[str, str]:
    """Key and value, still escaped: the key ends at the first separator or blank that is not escaped."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANKS:
        end += 2 if line[end] == "\\" else 1
    rest = line[end:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return line[:end], rest


def _unescape(text: str, offset: int) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    index = 0
    while index < len(text):
        character = text[index]
        index += 1
        if character != "\\" or index == len(text):
            out.append(character if character != "\\" else "")
            continue
        escaped = text[index]
        index += 1
        if escaped != "u":
            out.append(_ESCAPES.get(escaped, escaped))
            continue
        unit = _UNIT.match(text, index)
        if unit is None:
            raise WireError("properties", offset, "four hexadecimal digits after \\u", repr(text[index : index + 4]))
        out.append(chr(int(unit.group(), 16)))
        index += 4
    joined = "".join(out)
    # Two units of a surrogate pair are one character; a lone one is nothing that can be written anywhere.
    return joined.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "replace")
