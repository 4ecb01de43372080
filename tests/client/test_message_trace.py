"""Message traces: the fields of each record, and how records share a message."""

from __future__ import annotations

from refmq.client.message_trace import (
    TRACE_BODY_MAX,
    ConsumeReturn,
    TraceEntry,
    end_transaction_entry,
    packed,
    pub_entry,
    sub_after_entry,
    sub_before_entry,
)


def test_records_have_upstreams_fields_in_upstreams_order() -> None:
    pub = pub_entry(
        at_ms=1, region="R", group="g", topic="T", msg_id="M", tag="", keys=("k",), broker_address="b:1",
        body_length=2, cost_ms=3, message_type=0, offset_msg_id="O", success=True,
    )  # fmt: skip
    assert pub.text.split("\x01") == [
        "Pub",
        "1",
        "R",
        "g",
        "T",
        "M",
        "null",
        "k",
        "b:1",
        "2",
        "3",
        "0",
        "O",
        "true\x02",
    ]
    assert pub.keys == ("M", "k")
    before = sub_before_entry(at_ms=1, region="R", group="g", request_id="Q", msg_id="M", retry_times=2, keys=())
    assert before.text.split("\x01") == ["SubBefore", "1", "R", "g", "Q", "M", "2", "null\x02"]
    after = sub_after_entry(
        request_id="Q", msg_id="M", cost_ms=5, success=False, keys=("k",), outcome=ConsumeReturn.EXCEPTION,
        at_ms=9, group="g",
    )  # fmt: skip
    assert after.text.split("\x01") == ["SubAfter", "Q", "M", "5", "false", "k", "2", "9", "g\x02"]
    end = end_transaction_entry(
        at_ms=1, region="R", group="g", topic="T", msg_id="M", tag="A", keys=(), broker_address="b:1",
        transaction_id="X", state="COMMIT_MESSAGE", from_check=True,
    )  # fmt: skip
    fields = ["EndTransaction", "1", "R", "g", "T", "M", "A", "null", "b:1", "2", "X", "COMMIT_MESSAGE", "true\x02"]
    assert end.text.split("\x01") == fields


def test_records_share_a_message_as_long_as_they_fit() -> None:
    entries = [TraceEntry("x" * (TRACE_BODY_MAX // 2), (f"k{number}", "all")) for number in range(5)]
    bodies = packed(entries)
    assert [len(body) for body, _ in bodies] == [TRACE_BODY_MAX, TRACE_BODY_MAX, TRACE_BODY_MAX // 2]
    assert bodies[0][1] == ("k0", "all", "k1")
    assert packed([]) == []
