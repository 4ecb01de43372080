"""Sequences of steps of a store that chance hardly ever produces: what a mistake needs to show.

Each is taken whole, somewhere in a history.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from conformance.store import history as h
from conformance.store.steps import AGES_MS, LONG_PROPERTIES, LOSABLE, append_message, damage_record, pick, survivors
from refmq.sim.choice import Choose


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
