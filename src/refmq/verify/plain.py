"""Lines of a trace as sentences, for readers who know RocketMQ and not the vocabulary of traces.

`words.in_words` tells all that a line holds, under the names of the vocabulary; a sentence tells what happened. What is
rare has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from refmq.model.vocabulary import fields_of
from refmq.trace.record import Outcome
from refmq.verify.oracles import Line
from refmq.verify.oracles.transactions import COMMIT, ROLLBACK

NOWHERE: Final = -1
DECISIONS: Final[Mapping[int, str]] = {COMMIT: "to commit", ROLLBACK: "to roll back"}
SENTENCES: Final[Mapping[tuple[str, str], str]] = {
    ("AppendMessage", "step"): "stores {message} as offset {queue_offset} of {queue}, at {physical_offset} of its log",
    (
        "DispatchMessage",
        "step",
    ): "puts the record at {physical_offset} of its log into {queue} as offset {queue_offset}",
    ("FlushLog", "step"): "has made its log durable up to {flushed_to}",
    ("AckPut", "step"): "acknowledges {message}: offset {queue_offset} of {queue}",
    ("ServeMessage", "step"): "hands out offset {queue_offset} of {queue}: {message}",
    ("CommitOffset", "step"): "notes that {actor} consumed {queue} up to {after}; it was {before}",
    ("ProcessCrash", "step"): "is killed; what its log holds in the page cache survives",
    ("PowerLoss", "step"): "loses power; its log survives up to {kept_to}",
    ("StartStore", "step"): "opens its store",
    ("FinishRecovery", "step"): "has recovered its log, which ends at {valid_to}",
    ("TruncateLog", "step"): "cuts its log at {valid_to}",
    ("StopStore", "step"): "closes its store in good order",
    ("SendHalf", "step"): "stores the half {message} as half offset {half_offset}",
    ("EndTransaction", "step"): "is told {decision}: the half {message} at half offset {half_offset}",
    ("WriteOp", "step"): "marks half offset {half_offset} as done",
    ("HalfDiscard", "step"): "sets the half {message} aside: it was asked about {check_times} times",
    ("RoundStart", "step"): "begins a round of transaction checks",
    ("LockQueue", "step"): "is asked by {actor} for the lock of {queue}, granted: {granted}",
    ("UnlockQueue", "step"): "takes the lock of {queue} back from {actor}",
    ("Send", "invoke"): "{actor} sends {message} to {queue}",
    ("Send", "ok"): "{actor} is told that {message} is stored as offset {queue_offset} of {queue}",
    ("Send", "fail"): "{actor} is told that {message} was not stored",
    ("Send", "unknown"): "{actor} gets no answer about {message}; it may be stored or not",
    ("SendHalf", "invoke"): "{actor} begins a transaction with {message} for {queue}",
    ("SendHalf", "ok"): "{actor} is told that the half {message} is stored as half offset {half_offset}",
    ("EndTransaction", "invoke"): "{actor} decides {decision}: the half {message}",
    ("EndTransaction", "ok"): "{actor} has sent its decision on {message}",
    ("CheckReply", "invoke"): "{actor} answers a check about {message}: {decision}",
    ("SendDelayed", "invoke"): "{actor} sends {message} with delay level {level}",
    ("SendBack", "invoke"): "{actor} sends {message} back, to be delivered again",
    ("Pull", "invoke"): "{actor} asks for {queue} from offset {from_offset} on",
    ("Pull", "consumed"): "{actor} receives offset {queue_offset} of {queue}: {message}",
    ("Pull", "ok"): "{actor} is to go on at offset {next_offset} of {queue}, which ends at {max_offset}",
    ("PullFiltered", "invoke"): "{actor} asks for chosen tags of {queue} from offset {from_offset} on",
    ("PullFiltered", "consumed"): "{actor} receives offset {queue_offset} of {queue}: {message}",
    ("PullFiltered", "ok"): "{actor} is to go on at offset {next_offset} of {queue}",
    ("CommitOffset", "invoke"): "{actor} commits that it consumed {queue} up to {after}",
    ("CommitOffset", "ok"): "{actor} is told that its offset {after} of {queue} is kept",
    ("QueryOffset", "ok"): "{actor} is told that its group consumed {queue} up to {offset}",
    ("QueryBounds", "ok"): "{actor} is told that {queue} holds offsets from {min_offset} to below {max_offset}",
    ("QueryKey", "ok"): "{actor} looks {message} up by its key, found: {found}",
    ("LockQueue", "ok"): "{actor} is told whether it has the lock of {queue}: {granted}",
    ("Listen", "invoke"): "the listener of {actor} gets offset {queue_offset} of {queue}: {message}",
    ("Listen", "ok"): "the listener of {actor} is done with offset {queue_offset} of {queue}",
    ("Listen", "fail"): "the listener of {actor} failed at offset {queue_offset} of {queue}",
    ("Produce", "invoke"): "{actor} is about to send {message}",
    ("Subscribe", "ok"): "{actor} subscribes to {queue}",
    ("AcquireQueue", "step"): "{actor} takes {queue}, from offset {start_offset} on",
    ("ReleaseQueue", "step"): "{actor} gives {queue} away, consumed up to {consumed_to}",
    ("Heartbeat", "step"): "hears from {actor} of {queue}",
}
"""Action and outcome -> what the node does, or what happens to a client."""


def sentence_of(line: Line) -> str:
    """What a line says, as a sentence without its time; empty for what has no words."""
    outcome = Outcome(line.outcome).name.lower()
    told = SENTENCES.get((line.action, outcome))
    if told is None:
        return ""
    values = dict(zip(fields_of(line.action, outcome), (line.a, line.b, line.c, line.d), strict=False))
    words: dict[str, object] = {**values, "actor": line.actor or "somebody", "queue": place_of(line)}
    for name in ("granted", "found"):
        if name in values:
            words[name] = "yes" if values[name] else "no"
    if "decision" in values:
        words["decision"] = DECISIONS.get(values["decision"], "to wait")
    if "message" in values:
        words["message"] = f"message {values['message'] & 0xFFFF_FFFF_FFFF_FFFF:x}"
    return told.format(**words)


def place_of(line: Line) -> str:
    """The queue with its broker."""
    topic, broker, queue_id = line.queue
    if queue_id == NOWHERE:
        return topic or broker
    return f"{topic}/{queue_id} at {broker}"
