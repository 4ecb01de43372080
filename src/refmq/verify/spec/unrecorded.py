"""What a process did and could not write down any more when it died: its last appends, as far as they are known.

A node hands its events to the operating system every 0.2 s, so SIGKILL takes the last ones; and it may die between an
effect and its event. What the process did in that time shows afterwards: the next start finds a log that is longer
than the trace says, and dispatches its records again. Each of those was appended by a step that nobody recorded, and
that step is put back here, behind the last event of that life. Its message is the one that is served, or consumed, at
its place later on; any other will do if none is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from refmq.model.step import Event
from refmq.verify.spec.group_hints import Told

CRASHES = frozenset({"ProcessCrash", "PowerLoss"})


@dataclass(slots=True)
class _Life:
    """How far the log of a broker has come, by its events."""

    wrote: int = 0
    alive: bool = False
    """It was not stopped in good order."""
    last: int = -1
    """Where the last event of this broker is in the recording."""


def _messages(recording: Sequence[Told]) -> dict[tuple[str, int, int], int]:
    """(topic, queue, queue offset) -> the message that was served or consumed there."""
    found: dict[tuple[str, int, int], int] = {}
    for _, event in recording:
        if event.action == "ServeMessage":
            found[event.subject, event.queue_id, event.b] = event.c
        elif event.action == "ConsumeStart":
            found.setdefault((event.subject.partition("@")[0], event.queue_id, event.a), event.b)
    return found


def with_unrecorded(recording: Sequence[Told]) -> list[Told]:
    """The recording with the appends that killed brokers did not record."""
    lives: dict[str, _Life] = {}
    added: dict[int, list[Told]] = {}
    for at, (node, event) in enumerate(recording):
        life = lives.get(node)
        if event.action == "StartStore":
            life = lives.setdefault(node, _Life())
            if life.alive:
                found = list(_unrecorded(recording, node, at, life))
                if found:
                    added.setdefault(life.last, []).extend(found)
                    life.wrote = _end(found[-1].event)
        if life is None:
            continue
        if event.action in CRASHES:
            continue  # what the process did not record came before
        life.alive = event.action != "StopStore"
        life.last = at
        if event.action in ("AppendMessage", "RollFile"):
            life.wrote = _end(event)
        elif event.action == "TruncateLog":
            life.wrote = event.a
    if not added:
        return list(recording)
    return [told for at, one in enumerate(recording) for told in (one, *added.get(at, ()))]


def _unrecorded(recording: Sequence[Told], node: str, start: int, life: _Life) -> Iterator[Told]:
    """The appends behind the end of the log that the recovery from `start` on finds."""
    records: list[Event] = []
    for other, event in recording[start:]:
        if other == node and event.action == "ScanLog" and event.b <= life.wrote:
            return
        if other == node and event.action == "FinishRecovery":
            break
        if other == node and event.action == "DispatchMessage" and event.a >= life.wrote:
            records.append(event)
    if not records:
        return
    messages = _messages(recording)
    end = life.wrote
    for event in records:
        if event.a > end:
            yield Told(node, Event("RollFile", a=end, b=event.a))
        place = (event.subject, event.queue_id, event.b)
        message = messages.get(place, -1 - event.a)
        yield Told(node, Event("AppendMessage", "", *place[:2], a=event.a, b=event.b, c=message, d=event.d))
        end = event.a + event.d


def _end(event: Event) -> int:
    return event.b if event.action == "RollFile" else event.a + event.d
