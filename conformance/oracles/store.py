"""The promises of a store, as pure functions over what was observed. Names as in `refmq.model.vocabulary`.

Each takes the observations of one history, in order, and yields what it finds broken. They keep at most what a
promise is about (what was sent and acknowledged), and never ask an engine anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from conformance.oracles.config import config_survives
from conformance.oracles.promised import Promised, number_of
from conformance.oracles.pulls import pull_faults
from conformance.oracles.retention import checkpoint_monotone, retention_prefix
from conformance.oracles.searches import index_finds_every_key, time_search_exact
from conformance.oracles.store_events import (
    Checkpoint,
    Cut,
    Damaged,
    DeleteTopic,
    DeletionsKept,
    DiskFault,
    Failed,
    FaultsOver,
    Observation,
    PowerLoss,
    ProcessCrash,
    Promoted,
    Pulled,
    PutRefused,
    Readout,
    Recovered,
    Replicated,
    Sent,
    ServeMessage,
    StartFailed,
    StartStore,
    StopStore,
)
from conformance.store.record import BORN_IPV6, STORE_IPV6, Record, java_hash
from refmq.verify.oracles.base import Finding

Oracle = Callable[[Iterable[Observation]], Iterator[Finding]]

SHOWN_MAX: Final = 200
"""Characters of a value that a sentence shows."""
HOST_FLAGS: Final = BORN_IPV6 | STORE_IPV6


def acked_survives(observations: Iterable[Observation]) -> Iterator[Finding]:
    """What was acknowledged survives every fault that the flush mode covers."""
    promised = Promised()
    for event, seen in enumerate(observations):
        if isinstance(seen, StartFailed):
            yield Finding("AckedSurvives", f"the store does not start any more: {seen.error}", event)
        elif isinstance(seen, Readout):
            for sentence in promised.read(seen):
                yield Finding("AckedSurvives", sentence, event)
        else:
            promised.feed(seen)


def cut_log_fits_together(observations: Iterable[Observation]) -> Iterator[Finding]:
    """What is left of a log that was cut at a damage is a log, with the queues and the index of it."""
    sent: dict[int, Sent] = {}
    deleted_to: dict[str, int] = {}
    for event, seen in enumerate(observations):
        match seen:
            case Sent():
                sent[seen.number] = seen
            case DeleteTopic(topic, log_end):
                deleted_to[topic] = log_end
            case Cut(left):
                for sentence in _queue_faults(left, sent, deleted_to):
                    yield Finding("QueueMatchesLog", f"after a cut {sentence}", event)
                for oracle in (index_finds_every_key, time_search_exact):
                    for violation in oracle((left,)):
                        yield Finding(violation.invariant, f"after a cut {violation.sentence}", event)
            case _:
                pass


def no_invention(observations: Iterable[Observation]) -> Iterator[Finding]:
    """Nothing is stored or served that was not sent; nothing is stored twice, and nothing that was refused."""
    sent: dict[int, Sent] = {}
    refused: set[int] = set()
    dropped: set[int] = set()  # a start did not find them; then they are gone for ever
    for event, seen in enumerate(observations):
        records: Iterable[Record | str] = ()
        match seen:
            case Sent():
                sent[seen.number] = seen
            case PutRefused():
                refused.add(seen.number)
            case ServeMessage():
                records = (seen.record,)
            case Readout():
                records = (*seen.records, *(record for queue in seen.queues.values() for record in queue.served))
                if seen.log_fault:
                    yield Finding("NoInvention", f"the log is broken at {seen.log_end}: {seen.log_fault}", event)
                numbers = [number_of(record) for record in seen.records]
                for number in sorted(dropped.intersection(numbers)):
                    yield Finding("NoInvention", f"message {number} was gone after a start and is back", event)
                if seen.is_full:
                    dropped = sent.keys() - set(numbers)
                for number in {number for number in numbers if numbers.count(number) > 1}:
                    yield Finding("NoInvention", f"message {number} is in the log {numbers.count(number)} times", event)
            case _:
                continue
        for record in records:
            found = _difference(record, sent, refused)
            if found:
                yield Finding("NoInvention", found, event)


def _difference(record: Record | str, sent: dict[int, Sent], refused: set[int]) -> str:
    """Why a record is not what a producer sent; empty if it is."""
    if isinstance(record, str):
        return f"something that is not a record was served: {record}"
    number = number_of(record)
    origin = sent.get(number)
    if origin is None:
        return f"a record at {record.physical_offset} was never sent"
    if number in refused:
        return f"message {number} was refused and is stored at {record.physical_offset}"
    for name, expected, found in (
        ("topic", origin.topic, record.topic),
        ("queue", origin.queue_id, record.queue_id),
        ("flag", origin.flag, record.flag),
        ("system flag", origin.sys_flag, record.sys_flag & ~HOST_FLAGS),
        ("born host", origin.born_host, record.born_host),
        ("store host", origin.store_host, record.store_host),
        ("reconsume times", origin.reconsume_times, record.reconsume_times),
        ("prepared offset", origin.prepared_offset, record.prepared_offset),
        ("born time", origin.born_ms, record.born_ms),
        ("body", origin.body, record.body),
        ("properties", *_comparable(origin, record)),
    ):
        if expected != found:
            return f"message {number} was sent with {name} {expected!r} and is stored with {found!r}"
    if record.store_ms < origin.at_ms:
        return f"message {number} was sent at {origin.at_ms} and has the store time {record.store_ms}"
    return ""


def _comparable(origin: Sent, record: Record) -> tuple[object, object]:
    """The properties of both. A store that redirects a delayed message may write them in another order."""
    if origin.delay_ms >= 0:
        return sorted(origin.properties), sorted(record.properties)
    return origin.properties, record.properties


def queue_matches_log(observations: Iterable[Observation]) -> Iterator[Finding]:
    """Every queue unit names the record that it claims to name, in order, without holes."""
    sent: dict[int, Sent] = {}
    deleted_to: dict[str, int] = {}
    units_to: dict[str, int] = {}
    kept: dict[str, int] = {}  # deletions that no crash may undo
    for event, seen in enumerate(observations):
        match seen:
            case Sent():
                sent[seen.number] = seen
            case DeleteTopic(topic, log_end):
                deleted_to[topic] = log_end
                units_to[topic] = seen.dispatched_to
                kept = {}  # after a crash now the queues are not those of the checkpoint, and all are built again
            case DeletionsKept() | StopStore():
                kept = dict(units_to)
            case ProcessCrash() | PowerLoss():
                units_to = dict(kept)  # the others may be undone
            case Damaged():
                kept, units_to = {}, {}
            case Pulled():
                for sentence in pull_faults(seen):
                    yield Finding("QueueMatchesLog", sentence, event)
            case ServeMessage(record=Record() as record):
                wanted = (seen.wanted_topic, seen.wanted_queue_id, seen.wanted_queue_offset)
                if (record.topic, record.queue_id, record.queue_offset) != wanted:
                    yield Finding("QueueMatchesLog", f"a reader of {wanted} got {_name(record)}", event)
            case Readout():
                for sentence in _queue_faults(seen, sent, deleted_to):
                    yield Finding("QueueMatchesLog", sentence, event)
                for (topic, queue_id), queue in seen.queues.items():
                    back = [unit.physical_offset for unit in queue.units if unit.physical_offset < kept.get(topic, 0)]
                    if back:
                        yield Finding("QueueMatchesLog", f"{topic}/{queue_id} was deleted, and has {back}", event)
            case _:
                pass


def _queue_faults(seen: Readout, sent: dict[int, Sent], deleted_to: dict[str, int]) -> Iterator[str]:
    at = {record.physical_offset: record for record in seen.records}
    named: set[int] = set()
    for (topic, queue_id), queue in seen.queues.items():
        name = f"queue {topic}/{queue_id}"
        if seen.is_full and queue.max_offset == 0:
            yield f"{name} is there and never had a message"
        expected = range(queue.min_offset, queue.max_offset)
        if [unit.queue_offset for unit in queue.units] != list(expected):
            yield f"{name} has {expected} but its units are {[unit.queue_offset for unit in queue.units]}"
        for unit in queue.units:
            record = at.get(unit.physical_offset)
            if record is None:
                yield f"unit {unit.queue_offset} of {name} names {unit.physical_offset}, where no record begins"
            elif (record.topic, record.queue_id, record.queue_offset) != (topic, queue_id, unit.queue_offset):
                yield f"unit {unit.queue_offset} of {name} names {_name(record)}"
            elif unit.size_bytes != record.size_bytes:
                yield f"unit {unit.queue_offset} of {name} has size {unit.size_bytes}, its record {record.size_bytes}"
            elif unit.tags_code != _tags_code(record, sent.get(number_of(record))):
                yield f"unit {unit.queue_offset} of {name} has the tags code {unit.tags_code}"
            named.add(unit.physical_offset)
        for read in queue.reads:
            yield from pull_faults(read)
        found = [record.physical_offset if isinstance(record, Record) else record for record in queue.served]
        if found != [unit.physical_offset for unit in queue.units]:
            yield f"{name} has units for {[unit.physical_offset for unit in queue.units]} but served {found}"
    for record in seen.records:
        if (
            record.has_queue_unit
            and record.physical_offset < seen.dispatched_to
            and record.physical_offset >= deleted_to.get(record.topic, 0)
            and record.physical_offset not in named
        ):
            yield f"{_name(record)} at {record.physical_offset} is in no queue"
    yield from seen.outside
    for offset, is_same in seen.by_offset.items():
        if not is_same:
            yield f"the record at {offset} cannot be looked up by its id"


def _tags_code(record: Record, origin: Sent | None) -> int:
    if origin is not None and origin.delay_ms >= 0:
        return record.store_ms + origin.delay_ms
    tags = dict(record.properties).get("TAGS", "")
    return java_hash(tags) if tags else 0


def recovery_idempotent(observations: Iterable[Observation]) -> Iterator[Finding]:
    """A recovery that is interrupted and repeated ends as an undisturbed one."""
    for event, seen in enumerate(observations):
        if isinstance(seen, Recovered) and seen.undisturbed != seen.disturbed:
            yield Finding("RecoveryIdempotent", _readout_difference(seen.undisturbed, seen.disturbed), event)


def _readout_difference(undisturbed: Readout, disturbed: Readout) -> str:
    for name in ("log_min", "log_max", "dispatched_to", "records", "queues", "by_key", "by_key_between", "by_offset"):
        before, after = getattr(undisturbed, name), getattr(disturbed, name)
        if isinstance(before, Mapping) and before != after:
            where = min((key for key in before.keys() | after.keys() if before.get(key) != after.get(key)), key=str)
            name, before, after = f"{name} {where!r}", before.get(where), after.get(where)
        if before != after:
            return f"after an interrupted recovery {name} is {_short(after)}, after an undisturbed one {_short(before)}"
    return "the readouts differ"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]} ..."


def never_serve_unflushed(observations: Iterable[Observation]) -> Iterator[Finding]:
    """With sync flush nothing is served that a power loss could take back."""
    for event, seen in enumerate(observations):
        if isinstance(seen, ServeMessage) and seen.must_be_durable and not seen.is_durable:
            what = _name(seen.record) if isinstance(seen.record, Record) else seen.record
            yield Finding("NeverServeUnflushed", f"{what} was served and is not durable", event)


def recovery_finishes(observations: Iterable[Observation]) -> Iterator[Finding]:
    """A store that is started without further faults serves in the end, with everything dispatched."""
    stopped_cleanly = False
    may_rebuild = False  # the queues are not those of the checkpoint, and it is right to say so
    has_deleted = False  # perhaps while a checkpoint was written
    disk_failed = False  # a step may have ended half way, and left more than the checkpoint knows
    log_to = 0  # of the checkpoint
    for event, seen in enumerate(observations):
        match seen:
            case StartFailed(error):
                yield Finding("RecoveryFinishes", f"a start without faults failed: {error}", event)
            case StopStore():
                stopped_cleanly, has_deleted = True, False
            case StartStore(was_clean):
                if stopped_cleanly and not was_clean:
                    yield Finding("RecoveryFinishes", "a clean stop was taken for a crash", event)
                if stopped_cleanly and seen.records_dispatched:
                    yield Finding(
                        "RecoveryFinishes",
                        f"after a clean stop {seen.records_dispatched} records were dispatched",
                        event,
                    )
                if seen.notes and not may_rebuild and not disk_failed:
                    yield Finding("RecoveryFinishes", f"a checkpoint was not believed: {seen.notes}", event)
                stopped_cleanly = may_rebuild = disk_failed = has_deleted = False
            case Checkpoint():
                may_rebuild, log_to = has_deleted, seen.log_to
            case DiskFault():
                disk_failed = True
            case FaultsOver():  # and a checkpoint follows
                disk_failed = False
            case DeleteTopic():
                may_rebuild = has_deleted = True
            case DeletionsKept():
                has_deleted = False
            case Damaged():
                may_rebuild, stopped_cleanly = True, False
            case PowerLoss():
                # As long as nothing is durable the first file of the log may be gone, and not the second.
                may_rebuild, stopped_cleanly = may_rebuild or log_to <= 0, False
            case ProcessCrash():
                stopped_cleanly = False
            case Readout() if seen.is_full and seen.dispatched_to < seen.log_end and seen.records:
                last = seen.records[-1]
                if seen.dispatched_to < last.physical_offset + last.size_bytes:
                    yield Finding(
                        "RecoveryFinishes", f"dispatched to {seen.dispatched_to} only, of {seen.log_end}", event
                    )
            case _:
                pass


def prefix_replica(observations: Iterable[Observation]) -> Iterator[Finding]:
    """A slave's log equals the master's, and so do the queues and the index that it makes of it."""
    sent: dict[int, Sent] = {}
    for event, seen in enumerate(observations):
        if isinstance(seen, Sent):
            sent[seen.number] = seen
        if isinstance(seen, Promoted):
            for sentence in _promotion_faults(seen, sent):
                yield Finding("PrefixReplica", sentence, event)
        if not isinstance(seen, Replicated):
            continue
        parts: dict[str, Callable[[Readout], object]] = {"records": lambda readout: readout.records}
        if seen.master.records:
            parts |= {"begin": lambda readout: readout.log_min, "end": lambda readout: readout.log_max}
        if seen.with_queues:
            # A queue whose messages have all expired is known to the master only.
            parts |= {
                "keys": lambda readout: readout.by_key,
                "queues": lambda readout: {
                    name: queue for name, queue in readout.queues.items() if queue.min_offset < queue.max_offset
                },
            }
        for name, part in parts.items():
            if part(seen.master) != part(seen.slave):
                yield Finding("PrefixReplica", f"the {name} of a slave's log is not its master's", event)


def _promotion_faults(seen: Promoted, sent: dict[int, Sent]) -> Iterator[str]:
    kept = [r for r in seen.master.records if r.physical_offset + r.size_bytes <= seen.arrived_to]
    own = seen.slave.records[len(kept) :]
    if list(seen.slave.records[: len(kept)]) != kept:
        yield f"a slave that had the log up to {seen.arrived_to} has not all of its {len(kept)} records as a master"
    if [number_of(record) for record in own] != [each.number for each in seen.sent]:
        yield f"a slave that became the master has {own} after what it had received"
    if seen.with_queues:
        ends: dict[tuple[str, int], int] = {}
        for record in seen.slave.records:
            place = (record.topic, record.queue_id)
            if record in own and record.queue_offset != ends.get(place, 0):
                yield f"the new master gave {_name(record)}, and that queue ends at {ends.get(place, 0)}"
            if record.has_queue_unit:
                ends[place] = record.queue_offset + 1
        yield from _queue_faults(seen.slave, sent | {each.number: each for each in seen.sent}, {})
    for oracle in (index_finds_every_key, time_search_exact):
        for violation in oracle((seen.slave,)):
            yield str(violation)
    if replace(seen.restarted, flushed_to=0) != replace(seen.slave, flushed_to=0):
        difference = _readout_difference(seen.slave, seen.restarted)
        yield f"a slave that became the master is another after a restart: {difference}"


def unexpected_error(observations: Iterable[Observation]) -> Iterator[Finding]:
    """No operation raises what its interface does not allow. Not a promise of the specification, but of the code."""
    for event, seen in enumerate(observations):
        if isinstance(seen, Failed):
            yield Finding("UnexpectedError", f"{seen.step} raised {seen.error}", event)


def _name(record: Record) -> str:
    return f"message {number_of(record)} of {record.topic}/{record.queue_id} at queue offset {record.queue_offset}"


STORE_ORACLES: Final[dict[str, Oracle]] = {
    "AckedSurvives": acked_survives,
    "NoInvention": no_invention,
    "QueueMatchesLog": queue_matches_log,
    "IndexFindsEveryKey": index_finds_every_key,
    "RecoveryIdempotent": recovery_idempotent,
    "NeverServeUnflushed": never_serve_unflushed,
    "TimeSearchExact": time_search_exact,
    "RetentionPrefix": retention_prefix,
    "CheckpointMonotone": checkpoint_monotone,
    "RecoveryFinishes": recovery_finishes,
}
"""Every promise of spec/store_recovery and the function that judges it."""


def judge(observations: Iterable[Observation]) -> list[Finding]:
    """Everything that is broken, in the order of the promises."""
    seen = tuple(observations)
    oracles = (unexpected_error, config_survives, cut_log_fits_together, prefix_replica, *STORE_ORACLES.values())
    return [violation for oracle in oracles for violation in oracle(seen)]
