"""What the codec of bodies reads off a class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated

import pytest

from refmq.model.ids import MessageQueue
from refmq.protocol.bodies.shapes import Bean, BeanMember, EnumOf, ListOf, MapOf, Scalar, bean_shape
from refmq.protocol.headers.codec import Int32, Int64, Range, Wire

INT32 = Range(32, -(2**31), 2**31 - 1)
INT64 = Range(64, -(2**63), 2**63 - 1)


class Kind(IntEnum):
    A = 1


@dataclass(frozen=True)
class Inner:
    value: Int32


@dataclass(frozen=True)
class Outer:
    zebra_count: Int64
    name: str
    maybe: str | None = None
    kinds: tuple[Kind, ...] = ()
    table: Mapping[Int32, Inner] = field(default_factory=dict)
    client: Annotated[str, Wire("clientID")] = ""
    limited: Annotated[Int32 | None, Wire("lim")] = None
    ratio: float = 0.0
    flag: bool = False


def test_every_member_has_its_name_its_shape_and_whether_it_must_be_there() -> None:
    inner = Bean(Inner, (BeanMember("value", "value", Scalar(int, INT32), True),))
    assert {member.name: member for member in bean_shape(Outer).members} == {
        member.name: member
        for member in (
            BeanMember("zebra_count", "zebraCount", Scalar(int, INT64), True),
            BeanMember("name", "name", Scalar(str), True),
            BeanMember("maybe", "maybe", Scalar(str), False),
            BeanMember("kinds", "kinds", ListOf(EnumOf(Kind)), False),
            BeanMember("table", "table", MapOf(Scalar(int, INT32), inner), False),
            BeanMember("client", "clientID", Scalar(str), False),
            BeanMember("limited", "lim", Scalar(int, INT32), False),
            BeanMember("ratio", "ratio", Scalar(float), False),
            BeanMember("flag", "flag", Scalar(bool), False),
        )
    }


def test_members_stand_in_the_order_in_which_java_writes_them() -> None:
    @dataclass(frozen=True)
    class Renamed:
        a: Annotated[str, Wire("z")]
        b: str

    assert [member.wire_name for member in bean_shape(Renamed).members] == ["b", "z"]


def test_a_class_of_the_model_has_the_names_of_the_wire() -> None:
    members = [(member.wire_name, member.shape) for member in bean_shape(MessageQueue).members]
    assert members == [("brokerName", Scalar(str)), ("queueId", Scalar(int, INT32)), ("topic", Scalar(str))]


@dataclass(frozen=True)
class WithoutSize:
    number: int


@dataclass(frozen=True)
class Pair:
    two: tuple[str, str]


@pytest.mark.parametrize("wrong", [WithoutSize, Pair])
def test_a_class_that_the_codec_cannot_carry_is_found_at_once(wrong: type) -> None:
    with pytest.raises(AssertionError):
        bean_shape(wrong)
