"""How much an expression may ask of a broker, which evaluates it for whoever pulls.

One unit of work is about a microsecond of the reference. A pull that has used up its work returns what it has found and
where to go on; the consumer asks again, and others have had their turn.
"""

from __future__ import annotations

from typing import Final

from refmq.filter.sql_ast import And, Compare, Equal, Expression, HasText, IsNull, Negate, Not, Or

TERMS_MAX: Final = 4096
"""Parts of one expression."""

DEPTH_MAX: Final = 64
"""How deep its parts may be nested; far below the interpreter's own limit."""

WORK_MAX: Final = 10_000
"""What one pull may cost."""

_RECORD: Final = 16
"""Finding the properties of a record."""

_BYTES_A_UNIT: Final = 64
"""So many bytes of properties are decoded in one unit of work."""

_BYTES_A_TERM: Final = 1024
"""So long may a text be that a term looks through in one unit of work."""


def terms_and_depth(expression: Expression) -> tuple[int, int]:
    """How many parts an expression has, and how deep they are nested; without recursion, because they may be deep."""
    terms, depth = 0, 0
    left = [(expression, 1)]
    while left:
        part, level = left.pop()
        terms += 1
        depth = max(depth, level)
        match part:
            case And(operands) | Or(operands):
                left.extend((operand, level + 1) for operand in operands)
            case Not(operand) | Negate(operand) | IsNull(operand, _) | HasText(_, operand, _, _):
                left.append((operand, level + 1))
            case Equal(one, other) | Compare(_, one, other):
                left += ((one, level + 1), (other, level + 1))
            case _:
                pass
    assert terms >= depth > 0
    return terms, depth


def work_of(terms: int, properties_bytes: int) -> int:
    """What it costs to ask an expression of so many parts about a record with so many bytes of properties."""
    decoding = _RECORD + properties_bytes // _BYTES_A_UNIT
    return decoding + terms * (1 + properties_bytes // _BYTES_A_TERM)
