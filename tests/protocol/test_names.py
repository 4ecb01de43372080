from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.protocol import names
from refmq.protocol.names import group_complaint, is_system_group, is_system_topic, topic_complaint, with_namespace
from refmq.protocol.names import without_namespace as without

plain_names = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,10}", fullmatch=True)


def goes_there_and_back(name: str, namespace: str) -> None:
    there = with_namespace(name, namespace)
    assert without(there, namespace) == name
    assert with_namespace(there, namespace) == there, "wrapping twice is wrapping once"
    assert names.is_system_topic(name) or there != name


@given(plain_names, plain_names, st.sampled_from(["", "%RETRY%", "%DLQ%"]))
def test_a_name_in_a_namespace_comes_back(name: str, namespace: str, prefix: str) -> None:
    goes_there_and_back(prefix + name, namespace)


def test_the_property_catches_a_prefix_in_the_wrong_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "_split_prefix", lambda name: (name[:1], name[1:]))
    with pytest.raises(AssertionError):
        goes_there_and_back("ns%T", "s")


def test_forms_of_names_in_a_namespace() -> None:
    assert with_namespace("T", "ns") == "ns%T"
    assert with_namespace("%RETRY%g", "ns") == "%RETRY%ns%g"
    assert with_namespace("%DLQ%g", "ns") == "%DLQ%ns%g"
    for left_alone in ("TBW102", "SCHEDULE_TOPIC_XXXX", "rmq_sys_x", "CID_RMQ_SYS_TRANS", ""):
        assert with_namespace(left_alone, "ns") == left_alone
    assert with_namespace("T", None) == with_namespace("T", "") == without("T", None) == "T"


def test_what_a_topic_and_a_group_may_be_called() -> None:
    assert topic_complaint("a" * 127) is None
    assert topic_complaint("%RETRY%g|1_-") is None
    assert group_complaint("a" * 255) is None
    for bad in ("", " ", "a b", "a.b", "ä", "a\n", "a" * 128):
        assert topic_complaint(bad)
    assert group_complaint("a" * 256)


def test_system_names() -> None:
    assert is_system_topic("TBW102")
    assert is_system_topic("rmq_sys_anything")
    assert not is_system_topic("T")
    assert is_system_group("CID_RMQ_SYS_TRANS")
    assert names.NOT_FOR_CLIENTS < names.SYSTEM_TOPICS
    assert names.retry_topic("g") == "%RETRY%g"
    assert names.dlq_topic("g") == "%DLQ%g"
    assert names.reply_topic("c") == "c_REPLY_TOPIC"
    assert len(names.RESERVED_PROPERTIES) == 31
