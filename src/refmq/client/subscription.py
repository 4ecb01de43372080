"""What a consumer wants of a topic: every message, those with certain tags, or those that an SQL expression chooses.

A broker chooses by the hash of the tag, and two tags can share a hash, so the client compares the text again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from refmq.client.message import ReceivedMessage
from refmq.errors import UsageError
from refmq.protocol import names
from refmq.protocol.bodies.heartbeat import EXPRESSION_SQL92, EXPRESSION_TAG, SubscriptionData
from refmq.protocol.record import string_hash

ALL: Final = "*"
TAG_SEPARATOR: Final = "||"


@dataclass(frozen=True, slots=True)
class Sql:
    """An SQL92 expression over the properties of messages. Made by ``sql``."""

    expression: str


def sql(expression: str) -> Sql:
    """``topics={"Orders": refmq.sql("amount > 100 and region = 'eu'")}``"""
    if not expression.strip():
        raise UsageError("An SQL filter needs an expression; for everything, subscribe with '*'.")
    return Sql(expression)


def subscription(topic: str, wanted: str | Sql, version_ms: int) -> SubscriptionData:
    """The subscription of a heartbeat. ``wanted`` is ``*``, tags joined by ``||``, or ``sql(...)``."""
    if isinstance(wanted, Sql):
        return SubscriptionData(
            topic=topic, sub_string=wanted.expression, sub_version=version_ms, expression_type=EXPRESSION_SQL92
        )
    tags = tuple(dict.fromkeys(tag.strip() for tag in wanted.split(TAG_SEPARATOR) if tag.strip()))
    if not wanted.strip() or tags == (ALL,):
        return SubscriptionData(topic=topic, sub_string=ALL, sub_version=version_ms)
    if not tags:
        raise UsageError(f"The subscription {wanted!r} of {topic} names no tag.")
    hashes = tuple(string_hash(tag) for tag in tags)
    return SubscriptionData(topic=topic, sub_string=wanted, tags_set=tags, code_set=hashes, sub_version=version_ms)


def wants(subscription: SubscriptionData, message: ReceivedMessage) -> bool:
    """Whether the text of the message's tag is one of those asked for. What SQL chooses, the broker has decided."""
    if subscription.expression_type != EXPRESSION_TAG or not subscription.tags_set:
        return True
    return message.properties.get(names.TAGS) in subscription.tags_set
