"""JSON strings with exactly the escapes that fastjson writes by default.

    character                        written as
    -------------------------------  ------------------------------------------
    ``"`` and ``\\``                  ``\\"`` and ``\\\\``
    U+0008 09 0A 0C 0D               ``\\b \\t \\n \\f \\r``
    other U+0000-001F, 007F-009F     ``\\u00XX``, hexadecimal in upper case
    U+2028, U+2029                   ``\\u2028``, ``\\u2029``
    everything else, ``/`` included  itself, in UTF-8

``quote_ascii`` is the other form Java uses, for routes to clients that asked for standard JSON: in addition ``/`` is
written ``\\/`` and everything outside ASCII as ``\\uXXXX``.
"""

from __future__ import annotations

import re
from typing import Final

_SHORT: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPED: Final = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029]')
_ESCAPED_ASCII: Final = re.compile('["\\\\/\x00-\x1f\x7f-\U0010ffff]')


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    return _SHORT.get(character) or f"\\u{ord(character):04X}"


def _escape_ascii(match: re.Match[str]) -> str:
    character = match.group()
    if character == "/":
        return "\\/"
    if ord(character) > 0xFFFF:  # JSON counts UTF-16 units
        high, low = divmod(ord(character) - 0x10000, 0x400)
        return f"\\u{0xD800 + high:04X}\\u{0xDC00 + low:04X}"
    return _escape(match)


def quote(text: str) -> str:
    """``text`` as a JSON string in fastjson's default form."""
    if text.isalnum():  # nothing that is escaped is a letter or a digit, and most values are nothing else
        return f'"{text}"'
    return f'"{_ESCAPED.sub(_escape, text)}"'


def quote_ascii(text: str) -> str:
    """``text`` as a JSON string of ASCII characters only, as Java's route answer to newer clients."""
    return f'"{_ESCAPED_ASCII.sub(_escape_ascii, text)}"'
