"""Single steps of a history of a store, and its setting, drawn from a source of choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, get_args

from conformance.store import history as h
from refmq.sim.choice import Choose

BODIES: Final = (4, 5, 16, 40, 90, 150, 260, 420, 3000)
"""Body sizes: most fit several to a file, one fits no file at all."""
LEAVES: Final = (8, 7, 9, 0, 1, 20, 100, 16)
"""Bytes left in the log file after a fitted record. 8 is the least that a file may keep."""
WAITS_MS: Final = (1, 0, 10, 500, 1000, 3000, 10_000, 60_000, -1, -1000, -100_000)
MAINTAIN_MS: Final = (60_000, 0, 500, 1000, 10_000, 200)
PROPERTIES: Final = (32_767, 32_766, 32_768, 32_740)
"""Bytes of properties; a record holds 32767."""
LONG_PROPERTIES: Final = (130, 200, 400)
"""Bytes of properties that reach over a page or two of the disk."""
EFFECTS: Final = (1, 2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 30, 40)
LEVELS: Final = (1, 2, 18, 99, 4, 5, 9, 17)
"""Delay levels: seconds, minutes, hours, and one that there is not."""
HOURS: Final = (4, 5, 3, None)
USED_PERCENTS: Final = (10, 80, 87, 95, 75, 76, 85, 86, 90, 91)
AGES_MS: Final = (73 * 3600 * 1000, 0, 71 * 3600 * 1000, 72 * 3600 * 1000)
HEADER_FIELDS: Final = (0, 3, 4, 8, 12, 16, 20, 27, 28, 35, 36, 39, 48, 56, 64, 72, 76, 84, 87)
"""Bytes of a record in which something else is written: sizes, offsets, flags."""


def pick(choose: Choose, options: tuple[int, ...]) -> int:
    return options[choose(len(options))]


def setting(choose: Choose) -> h.Setting:
    sync = bool(choose(2))
    return h.Setting(
        log_file_bytes=(1024, 1500, 2048, 4096, 1024, 1500, 2048, 4096, 150_000)[choose(9)],
        queue_file_units=(4, 1, 2, 3, 7)[choose(5)],
        index_slots=(3, 1, 10, 30)[choose(4)],
        index_entries=(6, 2, 3, 12, 40)[choose(5)],
        page_bytes=(128, 64, 64, 512, 4096)[choose(5)],
        sync_flush=sync,
        transient_pool=not sync and choose(6) == 5,
        ext=choose(4) == 3,
        ext_file_bytes=(256, 64, 100)[choose(3)],
        store_ipv6=choose(5) == 4,
        memory_bytes=(24 << 30, 2000)[choose(4) == 3],
        piece_bytes=(1 << 20, 400, 100, 20)[choose(4)],
        files_max=(10, 1, 2)[choose(3)],
        few=choose(3) == 2,
        index=choose(12) < 11,
        message_bytes_max=(4 << 20, 420)[choose(6) == 5],
        flush_page_bytes=(4096, 64)[choose(3) == 2],
    )


def append_message(choose: Choose) -> h.AppendMessage:
    kind: tuple[h.Kind, ...] = (
        "plain",
        "plain",
        "plain",
        "plain",
        "plain",
        "delayed",
        "commit",
        "prepared",
        "rollback",
        "commit delayed",
    )
    if choose(3) == 2:
        # Records of one size: what a truncation left behind lines up with what is written over it.
        return h.AppendMessage(topic=choose(2), queue=choose(2), body_bytes=(150, 300)[choose(2)])
    fitted = choose(4) == 3
    return h.AppendMessage(
        topic=choose(3) if choose(15) < 14 else 3,
        queue=choose(2),
        body_bytes=pick(choose, BODIES[:-1]) if choose(20) < 19 else BODIES[-1],
        keys=tuple(choose(4) for _ in range(choose(3))),
        tag=choose(5),
        kind=kind[choose(len(kind))],
        level=pick(choose, LEVELS),
        leave=pick(choose, LEAVES) if fitted else None,
        early=choose(8) == 7,
        properties_bytes=_properties_bytes(choose),
        ends_with_zero=choose(20) == 19,
        image=choose(12) == 11,
    )


def _properties_bytes(choose: Choose) -> int:
    match choose(30):
        case 29:
            return pick(choose, PROPERTIES)
        case 28 | 27 | 26:
            return pick(choose, LONG_PROPERTIES)
        case _:
            return 0


def meanwhile(choose: Choose) -> h.Meanwhile:
    return h.Meanwhile(
        flushes=choose(6),
        topic=choose(3),
        queue=choose(2),
        dispatch=choose(2) == 1,
        count=1 + choose(2),
        after_ms=(0, 1, 1000)[choose(3)],
        times=1 + choose(3),
        keys=(choose(4),) if choose(2) else (),
    )


def append_illegal(choose: Choose) -> h.AppendIllegal:
    kinds = get_args(h.Illegal)
    return h.AppendIllegal(kinds[choose(len(kinds))])


def replicate(choose: Choose) -> h.Replicate:
    def death() -> tuple[h.Crash, int, tuple[int, ...]]:
        return ("process", "power")[choose(2)], choose(30), survivors(choose)

    return h.Replicate(
        piece_bytes=(333, 50, 1000)[choose(3)],
        deaths=tuple(death() for _ in range((0, 1, 2)[choose(3)])),
        percent=100 - choose(101) if choose(2) else 100,
        dispatch_every=(1, 3, 1000)[choose(3)],
        in_blank=choose(3) == 2,
        behind_ms=(0, 100_000)[choose(3) == 2],
        during_flush=choose(3) == 2,
    )


def append_batch(choose: Choose) -> h.AppendBatch:
    bodies = tuple(pick(choose, BODIES[:6]) for _ in range(1 + choose(4)))
    filler = (0, 0, 0, 0, 0, 0, 10_000, 20_000)[choose(8)]
    flags = (choose(6) == 5, choose(4) == 3)
    return h.AppendBatch(choose(3), choose(2), bodies, choose(4), filler, *flags)


def dispatch_message(choose: Choose) -> h.DispatchMessage:
    return h.DispatchMessage((100, 1, 2, 3)[choose(4)])


def serve_message(choose: Choose) -> h.ServeMessage:
    return h.ServeMessage(
        topic=choose(3),
        queue=choose(2),
        behind=(3, 0, 1, 100, -1, -2)[choose(6)],
        count=(32, 1, 2, 3, 8, 9)[choose(6)],
        tag=choose(5) if choose(3) == 2 else None,
        expression=choose(5) if choose(3) == 2 else None,
        bits_only=choose(2) == 1,
        since=(1 << 40, 0, 1000)[choose(3)],
    )


def survivors(choose: Choose) -> tuple[int, ...]:
    return tuple(choose(5) for _ in range(choose(24)))


def process_crash(choose: Choose) -> h.ProcessCrash:
    effects = pick(choose, EFFECTS) if choose(4) else 0
    return h.ProcessCrash(effects, torn=choose(400) if effects else 0)


def power_loss(choose: Choose) -> h.PowerLoss:
    effects = pick(choose, EFFECTS) if choose(4) else 0
    return h.PowerLoss(effects, choose(400) if effects else 0, survivors(choose), bool(choose(2)))


def start_store(choose: Choose) -> h.StartStore:
    def death() -> tuple[h.Crash, int, tuple[int, ...]]:
        return ("process", "power")[choose(2)], choose(40), survivors(choose)

    return h.StartStore(tuple(death() for _ in range((0, 0, 1, 1, 2)[choose(5)])))


def damage_checkpoint(choose: Choose) -> h.DamageCheckpoint:
    return h.DamageCheckpoint(("zero", "missing", "empty", "behind", "ahead", "torn")[choose(6)])


def damage_record(choose: Choose) -> h.DamageRecord:
    byte = pick(choose, HEADER_FIELDS) if choose(2) else choose(300)
    return h.DamageRecord(choose(30), byte, LOST[choose(len(LOST))], cut=choose(3) == 2)


LOSABLE: Final[tuple[h.Losable, ...]] = (
    "queues",
    "one queue",
    "queue file",
    "index",
    "index file",
    "index content",
)
LOST: Final[tuple[h.Lost, ...]] = ("", "queues", "index", "checkpoint", "file")

Make = Callable[[Choose], h.Step]

RUNNING: Final[tuple[tuple[int, Make], ...]] = (
    (30, append_message),
    (6, append_batch),
    (1, append_illegal),
    (8, lambda _: h.FlushLog()),
    (10, dispatch_message),
    (6, lambda choose: h.Maintain(pick(choose, MAINTAIN_MS))),
    (6, lambda choose: h.AdvanceClock(pick(choose, WAITS_MS))),
    (4, lambda choose: h.ExpireFile(pick(choose, AGES_MS), HOURS[choose(4)], pick(choose, USED_PERCENTS))),
    (1, lambda _: h.CleanQueues()),
    (6, serve_message),
    (3, lambda _: h.ReadEverything()),
    (1, lambda choose: h.DeleteTopic(choose(3))),
    (3, lambda _: h.StopStore()),
    (1, lambda _: h.RestartStore()),
    (5, process_crash),
    (6, power_loss),
    (1, lambda _: h.FailFlush()),
    (2, lambda choose: h.FillDisk(choose(12))),
    (1, replicate),
    (1, lambda _: h.SecondProcess()),
    (3, lambda choose: h.SaveConfig(choose(3))),
    (4, meanwhile),
)
"""What can happen to a running store, with weights."""

STOPPED: Final[tuple[tuple[int, Make], ...]] = (
    (12, start_store),
    (2, lambda choose: h.DamageAbort(present=choose(2) == 0)),
    (3, damage_checkpoint),
    (2, lambda choose: h.StrayFile(("log", "queue", "zero log")[choose(3)])),
    (1, lambda choose: h.StrayFile(("log text", "queue text", "index text")[choose(3)])),
    (1, lambda choose: h.StrayFile(("light queue", "queue name", "topic text")[choose(3)])),
    (1, lambda choose: h.DamageConfig(("missing", "empty")[choose(2)])),
    (2, damage_record),
    (1, lambda choose: h.LoseDerived(LOSABLE[choose(len(LOSABLE))])),
    (1, lambda choose: h.PowerLoss(0, 0, survivors(choose), bool(choose(2)))),
)
"""What can happen between two lives."""


def next_step(choose: Choose, *, is_running: bool) -> h.Step:
    """A step that makes sense now."""
    table = RUNNING if is_running else STOPPED
    number = choose(sum(weight for weight, _ in table))
    for weight, make in table:
        if number < weight:
            return make(choose)
        number -= weight
    raise AssertionError("the weights add up")
