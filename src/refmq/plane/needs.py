"""Answers of a check: go ahead, no, or not before the control plane has done something.

A need carries the refusal that is the answer when it cannot be met, so every remark stands beside its check.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from refmq.protocol.codes import ResponseCode


@dataclass(frozen=True, slots=True)
class Refusal:
    """A check failed: the answer."""

    code: ResponseCode
    remark: str


@dataclass(frozen=True, slots=True)
class SendCreation:
    """A topic that a send wants to come to be."""

    topic: str
    default_topic: str
    queues_wanted: int
    unit_mode: bool = False


@dataclass(frozen=True, slots=True)
class NeedsTopic:
    """A producer sends to a topic that is not there, or not durable yet. It may come to be from a default topic."""

    creation: SendCreation
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class NeedsOwnTopic:
    """A topic that the broker itself needs: the dead letters of a group."""

    topic: str
    queue_count: int
    refusal: Refusal


@dataclass(frozen=True, slots=True)
class NeedsGroup:
    """A consumer group that is not known yet."""

    group: str
    refusal: Refusal


Need: TypeAlias = NeedsTopic | NeedsOwnTopic | NeedsGroup
