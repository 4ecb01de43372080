"""Making what every message needs one of: by C where it was built, by the class itself otherwise.

The same objects with the same values. A frozen dataclass is slow to make (a microsecond for ten fields), and three of
them for each message that is sent were a tenth of what it cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, TypeVar

import refmq_fast
from refmq.client.message import Message, SendResult
from refmq.protocol.command import RemotingCommand

T = TypeVar("T")


def maker(kind: type[T]) -> Callable[..., T]:
    """Makes a ``kind``, a frozen dataclass with slots that checks nothing, from a value for each of its fields."""
    assert not hasattr(kind, "__post_init__"), "what a class checks when it is made is not left out"
    if not refmq_fast.AVAILABLE:
        return kind
    frozen: Any = kind
    return refmq_fast.Maker(kind, tuple(field.name for field in fields(frozen)))


new_command: Final = maker(RemotingCommand)
new_message: Final = maker(Message)
new_result: Final = maker(SendResult)
