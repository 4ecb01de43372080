"""Version numbers as they stand in the ``version`` field of a command.

The number is the position in a list of all releases and snapshots. From 4.0.0 on the list is regular, ten patch
levels with a snapshot and a release each, so the position can be computed:

    212 + 20 * (10 * (major - 4) + minor) + 2 * patch + (0 for a snapshot, 1 for a release)

Older positions are irregular; those that affect behaviour are named below. Peers newer than the end
of the list send larger numbers, which count as ``HIGHER_VERSION``.
"""

from __future__ import annotations

from typing import Final

from refmq.errors import UsageError

_FIRST_REGULAR: Final = 212  # 4.0.0-SNAPSHOT
_LAST_REGULAR_MAJOR: Final = 5

V3_0_7_SNAPSHOT: Final = 28  # consumers below it cannot have their offsets reset by the broker
V3_0_11: Final = 37  # brokers below it register with a bare topic table
V3_1_8_SNAPSHOT: Final = 62  # consumers below it have no running info
V3_4_9: Final = 121  # clients below it do not send maxReconsumeTimes
V4_1_0_SNAPSHOT: Final = 232  # brokers below it know no SQL92
V4_9_3: Final = 399  # the last client that leaves _UNIQUE_KEY_QUERY out of its signature
V4_9_4: Final = 401  # nameserver clients from here on read standard JSON
V4_9_8: Final = 409  # what refmq says it is
V5_0_0: Final = 413  # brokers from here on register topic mappings too
V5_3_1: Final = 475  # clients above it understand GO_AWAY
V5_3_3: Final = 479
HIGHER_VERSION: Final = 612


def version_number(major: int, minor: int, patch: int, *, snapshot: bool = False) -> int:
    """The number of a release from 4.0.0 to 5.9.9.

    >>> version_number(4, 9, 8)
    409
    """
    if not (4 <= major <= _LAST_REGULAR_MAJOR and 0 <= minor <= 9 and 0 <= patch <= 9):
        raise UsageError(f"version {major}.{minor}.{patch} has no regular number; 4.0.0 to 5.9.9 have one.")
    return _FIRST_REGULAR + 20 * (10 * (major - 4) + minor) + 2 * patch + (0 if snapshot else 1)


def version_name(number: int) -> str:
    """The name of a version number in upstream's spelling, or ``V<number>`` where the list is irregular.

    >>> version_name(409), version_name(613)
    ('V4_9_8', 'HIGHER_VERSION')
    """
    if number >= HIGHER_VERSION:
        return "HIGHER_VERSION"
    if number < _FIRST_REGULAR:
        return _IRREGULAR.get(number, f"V{number}")
    index, release = divmod(number - _FIRST_REGULAR, 2)
    minors, patch = divmod(index, 10)
    major, minor = divmod(minors, 10)
    return f"V{major + 4}_{minor}_{patch}{'' if release else '_SNAPSHOT'}"


_IRREGULAR: Final = {
    V3_0_7_SNAPSHOT: "V3_0_7_SNAPSHOT",
    V3_0_11: "V3_0_11",
    V3_1_8_SNAPSHOT: "V3_1_8_SNAPSHOT",
    V3_4_9: "V3_4_9",
}
