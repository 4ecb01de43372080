"""Histories drawn from a source of choices: Hypothesis for the state machine, a seed for a campaign.

Every function takes a `Choose`; 0 is the simplest choice everywhere, so what Hypothesis shrinks becomes simple. The
weights are chosen so that a history of some forty steps has several lives, files that roll and a few faults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, get_args

from conformance.store import history as h
from refmq.sim.choice import Choose, seeded

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


def torn_and_overwritten(choose: Choose) -> tuple[h.Step, ...]:
    """Records of one size; some are torn by a power loss; others of that size are written in their place.

    If recovery leaves what stands behind the cut, the start after the next crash finds it again.
    """
    same = h.AppendMessage(topic=choose(2), queue=choose(2), body_bytes=(150, 300)[choose(2)])
    return (
        *[same] * (2 + choose(3)),
        h.PowerLoss(survivors=survivors(choose)),
        h.StartStore(),
        *[same] * (1 + choose(3)),
        (h.ProcessCrash(), h.StopStore())[choose(2)],
        h.StartStore(),
    )


def cleaned_and_lost(choose: Choose) -> tuple[h.Step, ...]:
    """New queues are filled, their messages expire, and the power goes: only their units say where they end."""
    same = h.AppendMessage(topic=choose(3), queue=choose(2), body_bytes=(300, 150)[choose(2)])
    other = replace(same, queue=1 - same.queue)
    return (
        *[same] * (1 + choose(8)),
        *[other] * (4 * choose(3)),
        h.FlushLog(),
        *((h.DispatchMessage(), h.Maintain(60_000)) if choose(4) else ()),
        *[same] * choose(4),
        h.DispatchMessage(),
        h.ExpireFile(AGES_MS[0], None),
        h.PowerLoss(survivors=survivors(choose), harsh=choose(4) > 0),
        h.StartStore(),
    )


def kept_by_the_clock(choose: Choose) -> tuple[h.Step, ...]:
    """Messages get their units, a minute passes, and the power goes: everything was made durable by the clock alone."""
    return (
        *[append_message(choose) for _ in range(2 + choose(4))],
        h.FlushLog(),
        h.DispatchMessage(),
        h.Maintain(60_000),
        h.PowerLoss(survivors=survivors(choose), harsh=choose(4) > 0),
        h.StartStore(),
    )


def full_while_dispatched(choose: Choose) -> tuple[h.Step, ...]:
    """The disk is full for a moment while messages with several keys get their units and index entries."""
    keys = tuple(choose(4) for _ in range(1 + choose(4)))
    topic, queue = choose(3), choose(2)
    deleted = (h.AppendMessage(topic, queue), h.FlushLog(), h.DispatchMessage(), h.DeleteTopic(topic))
    return (
        *[h.AppendMessage(topic, queue) for _ in range(choose(4))],
        *(deleted if choose(3) == 2 else ()),
        *[h.AppendMessage(topic, queue, keys=keys) for _ in range(1 + choose(3))],
        h.FlushLog(),
        h.FillDisk(choose(16)),
        h.DispatchMessage(),
        h.DispatchMessage(),
        h.ReadEverything(),
        *((h.StopStore(), h.StartStore()) if choose(3) == 2 else ()),
    )


def long_and_torn(choose: Choose) -> tuple[h.Step, ...]:
    """Records with long texts are half on the disk when the power goes: pages of topics and properties are lost."""
    return (
        *[
            h.AppendMessage(3 * choose(2), choose(2), 4, properties_bytes=pick(choose, (0, *LONG_PROPERTIES)))
            for _ in range(1 + choose(4))
        ],
        h.PowerLoss(survivors=survivors(choose), harsh=choose(2) == 1),
        h.StartStore(),
    )


def failed_over(choose: Choose) -> tuple[h.Step, ...]:
    """A slave has got a part of a few messages, of which it has dispatched few, and becomes the master."""
    kinds: tuple[h.Kind, ...] = ("plain", "prepared", "commit", "rollback", "delayed")
    return (
        *[h.AppendMessage(choose(2), choose(2), (40, 260)[choose(2)], kind=kinds[choose(5)]) for _ in range(4)],
        h.AdvanceClock((0, 1000)[choose(2)]),
        h.AppendMessage(choose(2), choose(2), 40, kind=kinds[choose(5)]),
        h.FlushLog(),
        h.DispatchMessage(),
        h.Replicate(
            piece_bytes=(333, 50, 1000)[choose(3)],
            percent=99 - choose(60),
            dispatch_every=(1000, 3, 1)[choose(3)],
            in_blank=choose(4) == 3,
            behind_ms=(0, 100_000)[choose(2)],
            during_flush=choose(2) == 1,
        ),
    )


def saved_and_died(choose: Choose) -> tuple[h.Step, ...]:
    """The configuration is saved, the process dies in the next save, the file is lost, and it is saved again: with the
    value that the dead process had written, as likely as not."""
    value = choose(3)
    return (
        h.SaveConfig(choose(3)),
        h.SaveConfig(choose(3)),
        (h.ProcessCrash, h.PowerLoss)[choose(2)](1 + choose(16), choose(3)),
        h.SaveConfig(value),
        h.SaveConfig(value),
        *((h.DamageConfig(("missing", "empty")[choose(2)]),) if choose(2) else ()),
        h.StartStore(),
        *((h.SaveConfig(value),) if choose(2) else (h.SaveConfig(choose(3)), h.SaveConfig(choose(3)))),
        h.PowerLoss(survivors=survivors(choose), harsh=choose(2) == 1),
        h.StartStore(),
    )


def served_meanwhile(choose: Choose) -> tuple[h.Step, ...]:
    """Messages come and are dispatched while everything is being made durable; then the process or the power goes."""
    topic, queue = choose(3), choose(2)
    return (
        *[append_message(choose) for _ in range(1 + choose(3))],
        h.FlushLog(),
        h.DispatchMessage(),
        h.Meanwhile(
            choose(10),
            topic,
            queue,
            dispatch=choose(4) > 0,
            count=1 + choose(3),
            after_ms=(0, 1, 1000)[choose(3)],
            times=1 + choose(3),
            keys=tuple(choose(4) for _ in range(choose(3))),
            delete=choose(4) == 3,
        ),
        *[h.Maintain(60_000)] * (1 + choose(2)),
        (h.ProcessCrash(), h.PowerLoss(survivors=survivors(choose), harsh=choose(2) == 1), h.ReadEverything())[
            choose(3)
        ],
        h.StartStore(),
    )


def rolled_meanwhile(choose: Choose) -> tuple[h.Step, ...]:
    """The log gets new files while it is made durable, with the names of its files; then the power goes."""
    size = (260, 420)[choose(2)]
    return (
        *[h.AppendMessage(choose(3), choose(2), size) for _ in range(2 + choose(3))],
        h.Meanwhile(
            choose(5),
            topic=choose(3),
            queue=choose(2),
            dispatch=choose(2) > 0,
            count=1 + choose(3),
            times=1 + choose(3),
            body_bytes=size,
        ),
        (h.FlushLog(), h.Maintain(60_000))[choose(2)],
        h.FlushLog(),
        h.PowerLoss(survivors=survivors(choose), harsh=choose(4) > 0),
        h.StartStore(),
    )


def cut_and_died(choose: Choose) -> tuple[h.Step, ...]:
    """A power loss takes records and leaves their units. These are cut, the process dies before the cut is durable, and
    records of another queue come to stand in the same places."""
    first, other = choose(2), choose(2)
    size = (4, 40, 150)[choose(3)]
    known = (h.AppendMessage(first, 0, size), h.FlushLog(), h.DispatchMessage(), h.Maintain(60_000))
    return (
        *(known if choose(2) else ()),
        *[h.AppendMessage(first, 0, size)] * (2 + choose(6)),
        h.DispatchMessage(),
        h.PowerLoss(survivors=survivors(choose), harsh=choose(2) == 1),
        h.StartStore(deaths=(("process", 3 + choose(10), ()),)),
        *[h.AppendMessage(other, 1, size)] * (2 + choose(6)),
        h.FlushLog(),
        h.DispatchMessage(),
        h.Maintain(60_000),
        h.PowerLoss(survivors=survivors(choose), harsh=choose(4) > 0),
        h.StartStore(),
    )


def a_minute_in_pieces(choose: Choose) -> tuple[h.Step, ...]:
    """A minute passes in pieces, perhaps with a deletion or without room: at its end everything is durable."""
    topic, queue = choose(3), choose(2)
    return (
        *[h.AppendMessage(topic, queue) for _ in range(1 + choose(3))],
        *((h.FlushLog(),) if choose(3) else ()),
        h.DispatchMessage(),
        *((h.DeleteTopic(choose(3)),) if choose(3) == 2 else ()),
        *[h.Maintain((10_000, 1000, 4000, 20_000)[choose(4)]) for _ in range(choose(8))],
        *((h.FillDisk(choose(4)),) if choose(3) == 2 else ()),
        *[h.Maintain((500, 10_000, 60_000)[choose(3)]) for _ in range(1 + choose(2))],
        h.AppendMessage(topic, queue),
        h.Maintain((200, 500, 1000)[choose(3)]),
    )


def full_at_the_minute(choose: Choose) -> tuple[h.Step, ...]:
    """There is no room for the checkpoint that is due. When there is, it is written at once."""
    topic, queue = choose(3), choose(2)
    return (
        *[h.AppendMessage(topic, queue, keys=(choose(4),)) for _ in range(1 + choose(3))],
        h.FlushLog(),
        h.DispatchMessage(),
        h.FillDisk(choose(20)),
        h.Maintain(60_000),
        h.Maintain((200, 500, 1000)[choose(3)]),
        *((h.PowerLoss(survivors=survivors(choose), harsh=True), h.StartStore()) if choose(2) else ()),
    )


def many_in_one_queue(choose: Choose) -> tuple[h.Step, ...]:
    """A queue gets more units than a page of the flush rules holds, and a second passes."""
    topic, queue = choose(3), choose(2)
    return (
        *[h.AppendBatch(topic, queue, (4, 5, 4, 5)[: 1 + choose(4)]) for _ in range(2 + choose(4))],
        h.FlushLog(),
        h.DispatchMessage(),
        h.Maintain((1000, 500, 10_000)[choose(3)]),
        h.ReadEverything(),
    )


def deleted_and_died(choose: Choose) -> tuple[h.Step, ...]:
    """A topic is deleted, comes back or does not, and the store dies before or after it could write that down."""
    topic, queue = choose(3), choose(2)
    return (
        *[h.AppendMessage(topic, queue, (4, 260)[choose(2)]) for _ in range(1 + choose(6))],
        h.FlushLog(),
        *((h.DispatchMessage(),) if choose(4) else ()),
        h.DeleteTopic(topic),
        *[h.AppendMessage(topic, queue, (4, 260)[choose(2)]) for _ in range(choose(5))],
        *((h.FlushLog(), h.DispatchMessage()) if choose(2) else ()),
        *((h.Maintain((200, 60_000)[choose(2)]),) if choose(3) else ()),
        (h.ProcessCrash(), h.PowerLoss(survivors=survivors(choose), harsh=choose(2) == 1), h.StopStore())[choose(3)],
        h.StartStore(),
    )


def lost_behind_its_back(choose: Choose) -> tuple[h.Step, ...]:
    """Messages with keys fill a few index files and queues; between two lives some of these are removed."""
    keys = tuple(choose(4) for _ in range(1 + choose(3)))
    return (
        *[h.AppendMessage(choose(3), choose(2), keys=keys) for _ in range(2 + choose(4))],
        h.FlushLog(),
        h.DispatchMessage(),
        (h.Maintain(60_000), h.StopStore())[choose(2)],
        (h.ProcessCrash(), h.PowerLoss(survivors=survivors(choose), harsh=choose(2) == 1))[choose(2)],
        h.LoseDerived(LOSABLE[choose(len(LOSABLE))]),
        h.StartStore(),
    )


def stopped_and_damaged(choose: Choose) -> tuple[h.Step, ...]:
    """A log of several files is stopped cleanly; then records are damaged, in copies of it."""
    return (
        *[h.AppendMessage(choose(3), choose(2), (260, 420, 90)[choose(3)], image=choose(3) == 2) for _ in range(7)],
        h.StopStore(),
        *[damage_record(choose) for _ in range(1 + choose(3))],
        h.StartStore(),
    )


PATTERNS: Final = (
    stopped_and_damaged,
    lost_behind_its_back,
    torn_and_overwritten,
    cleaned_and_lost,
    kept_by_the_clock,
    full_while_dispatched,
    long_and_torn,
    failed_over,
    saved_and_died,
    served_meanwhile,
    rolled_meanwhile,
    cut_and_died,
    many_in_one_queue,
    a_minute_in_pieces,
    full_at_the_minute,
    deleted_and_died,
)
PATTERN_ONE_IN: Final = 10
"""How often a step of a history is a whole pattern."""


def history(seed: int, steps: int = 40) -> h.History:
    """A history from a seed. Whether a store runs is guessed from the steps: any list of steps is a history."""
    choose = seeded(seed)
    first = setting(choose)
    made: list[h.Step] = []
    is_running = True
    for _ in range(steps):
        if is_running and choose(PATTERN_ONE_IN) == PATTERN_ONE_IN - 1:
            made.extend(PATTERNS[choose(len(PATTERNS))](choose))
            continue
        step = next_step(choose, is_running=is_running)
        made.append(step)
        match step:
            case h.StartStore():
                is_running = True
            case h.StopStore() | h.ProcessCrash(effects=0) | h.PowerLoss(effects=0):
                is_running = False
            case h.ProcessCrash() | h.PowerLoss():
                # It dies somewhere in the steps that follow, or at the latest before the next start.
                made.extend(next_step(choose, is_running=True) for _ in range(1 + choose(4)))
                is_running = False
            case _:
                pass
    return h.History(first, tuple(made))
