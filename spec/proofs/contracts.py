"""Contracts of pure functions, as wrappers with the promise in the docstring (PEP 316), for CrossHair.

CrossHair runs the real code with symbolic arguments and looks for arguments that break a promise. Where it has
followed every path the promise is confirmed; otherwise nothing was found in the time it was given, which is less than
a proof and more than examples. `BROKEN` are the same promises with one mistake; CrossHair must find it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from refmq.broker.runtime import human_size
from refmq.client.allocate import allocate_averagely, allocate_averagely_by_circle
from refmq.model.broker_config import perm_text
from refmq.protocol.record import string_hash
from refmq.store.config import DELAY_LEVELS_DEFAULT
from refmq.store.delay import UNKNOWN_LEVEL_MS, DelayLevels, clamped_offset
from refmq.store.index_file import key_hash

LEVELS: Final = DelayLevels.parse(DELAY_LEVELS_DEFAULT)
IDS: Final = ("a", "b", "c")


def delay_of_a_level(level: int) -> int:
    """
    post: UNKNOWN_LEVEL_MS <= _ <= 7_200_000
    post: implies(level == 18, _ == 7_200_000)
    """
    return LEVELS.delay_ms(level)


def delays_grow(level: int) -> tuple[int, int]:
    """
    pre: 1 <= level < 18
    post: _[0] < _[1]
    """
    return LEVELS.delay_ms(level), LEVELS.delay_ms(level + 1)


def offset_inside_its_queue(offset: int, queue_min: int, size: int) -> int:
    """
    pre: size >= 0
    post: queue_min <= _ <= queue_min + size
    post: implies(queue_min <= offset <= queue_min + size, _ == offset)
    """
    return clamped_offset(offset, queue_min, queue_min + size)


def delivery_of_a_level(level: int, store_ms: int) -> int | None:
    """
    pre: -3 <= level <= 30
    post: (_ is None) == (level <= 0)
    post: implies(_ is not None, _ == store_ms + LEVELS.delay_ms(min(level, 18)))
    """
    return LEVELS.deliver_ms(str(level), store_ms)


def small_size_reads(size_bytes: int) -> str:
    """
    pre: 0 <= size_bytes < 1024
    post: _ == str(size_bytes) + " B"
    """
    return human_size(size_bytes)


def hash_has_32_bits(text: str) -> int:
    """
    pre: len(text) <= 3
    post: -(2**31) <= _ < 2**31
    """
    return string_hash(text)


def index_hash_is_not_negative(topic: str, key: str) -> int:
    """
    pre: len(topic) <= 2 and len(key) <= 2
    post: 0 <= _ < 2**31
    """
    return key_hash(topic, key)


def permission_reads(perm: int) -> str:
    """
    pre: 0 <= perm <= 7
    post: [letter != "-" for letter in _] == [perm >= 4, perm % 4 >= 2, perm % 2 == 1]
    """
    return perm_text(perm)


def average_leaves_nothing_out(queues: list[int]) -> list[int]:
    """
    pre: 1 <= len(queues) <= 5
    post: _ == queues
    """
    return [queue for client_id in IDS for queue in allocate_averagely(client_id, queues, IDS)]


def circle_deals_out_in_order(queues: list[int]) -> list[list[int]]:
    """
    pre: 1 <= len(queues) <= 5
    post: all(_[at % 3][at // 3] == queue for at, queue in enumerate(queues))
    post: sum(len(part) for part in _) == len(queues)
    """
    return [allocate_averagely_by_circle(client_id, queues, IDS) for client_id in IDS]


# --- the same with a mistake ----------------------------------------------------------------------------------------


def broken_delay_of_a_level(level: int) -> int:
    """
    post: UNKNOWN_LEVEL_MS <= _ <= 7_200_000
    """
    return LEVELS.delays_ms[level - 1] if level <= LEVELS.level_max else UNKNOWN_LEVEL_MS


def broken_offset_inside_its_queue(offset: int, queue_min: int, size: int) -> int:
    """
    pre: size >= 0
    post: queue_min <= _ <= queue_min + size
    """
    return max(min(offset, queue_min), queue_min + size) + 1


def broken_delivery_of_a_level(level: int, store_ms: int) -> int | None:
    """
    pre: -3 <= level <= 30
    post: (_ is None) == (level <= 0)
    post: implies(_ is not None, _ == store_ms + LEVELS.delay_ms(min(level, 18)))
    """
    return store_ms + LEVELS.delay_ms(level) if level > 0 else None


def broken_permission_reads(perm: int) -> str:
    """
    pre: 0 <= perm <= 7
    post: [letter != "-" for letter in _] == [perm >= 4, perm % 4 >= 2, perm % 2 == 1]
    """
    return perm_text(perm >> 1)


def broken_index_hash_is_not_negative(value: int) -> int:
    """
    pre: -(2**31) <= value < 2**31
    post: 0 <= _ < 2**31
    """
    return abs(value)


def broken_average_leaves_nothing_out(queues: list[int]) -> list[int]:
    """
    pre: 1 <= len(queues) <= 5
    post: _ == queues
    """
    ids = ("a", "a", "b")
    return [queue for client_id in ids for queue in allocate_averagely(client_id, queues, ids)]


SOUND: Final[tuple[Callable[..., object], ...]] = (
    delay_of_a_level,
    delays_grow,
    offset_inside_its_queue,
    delivery_of_a_level,
    small_size_reads,
    hash_has_32_bits,
    index_hash_is_not_negative,
    permission_reads,
    average_leaves_nothing_out,
    circle_deals_out_in_order,
)
BROKEN: Final[tuple[Callable[..., object], ...]] = (
    broken_delay_of_a_level,
    broken_offset_inside_its_queue,
    broken_delivery_of_a_level,
    broken_permission_reads,
    broken_index_hash_is_not_negative,
    broken_average_leaves_nothing_out,
)
