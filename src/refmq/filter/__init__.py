"""Which messages a subscription wants: tag sets and SQL92 expressions, both pure.

`TagFilter` decides on a queue unit alone (the 32-bit hash of the tag), `SqlFilter` needs the properties of
the message; the Bloom filter lets a queue unit say early that an SQL expression cannot match.
"""

from __future__ import annotations

from refmq.filter.bloom import BloomFilter
from refmq.filter.sql_eval import EvaluationError, Truth, evaluate, matches
from refmq.filter.sql_parser import SqlSyntaxError, compile_expression
from refmq.filter.tags import TagFilter, parse_tags

__all__ = [
    "BloomFilter",
    "EvaluationError",
    "SqlSyntaxError",
    "TagFilter",
    "Truth",
    "compile_expression",
    "evaluate",
    "matches",
    "parse_tags",
]
