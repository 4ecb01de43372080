from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.protocol import headers
from refmq.protocol.headers.codec import header_plan
from tests.protocol.headers.names import UPSTREAM, WIRE_NAMES, names_of, round_trips
from tests.protocol.strategies import headers_of
from tests.protocol.upstream import GOLDEN, OUR_NAMES

CLASSES: list[Any] = [
    value
    for name, value in sorted(vars(headers).items())
    if dataclasses.is_dataclass(value) and name.endswith(("Request", "Response"))
]


@pytest.mark.parametrize("header_type", CLASSES, ids=lambda header_type: header_type.__name__)
def test_every_header_has_its_names_on_the_wire(header_type: Any) -> None:
    assert names_of(header_type) == WIRE_NAMES[header_type.__name__]


def test_every_name_list_has_its_header() -> None:
    assert set(WIRE_NAMES) == {header_type.__name__ for header_type in CLASSES}


# Round trips --------------------------------------------------------------------------------------


@given(st.data())
def test_decoding_what_was_encoded_gives_it_back(data: st.DataObject) -> None:
    round_trips(data.draw(headers_of(data.draw(st.sampled_from(CLASSES)))))


# Errors and tolerance -----------------------------------------------------------------------------


# Against the classes of the published jars ---------------------------------------------------------

# Ext fields that upstream adds outside its header classes.
ADDED = {
    "QueryMessageRequest": {"_UNIQUE_KEY_QUERY"},
    "SendMessageResponse": {"MSG_REGION", "TRACE_ON"},
    "GetTopicConfigRequest": {"lo"},
}
# Fields that are mandatory upstream and may be absent here, and the reverse, each with its reason.
LENIENT = {
    "SendMessageResponse": {"msgId", "queueId", "queueOffset"},  # errors carry only the region
    "CreateTopicRequest": {"order", "defaultTopic"},  # the broker of 4.9.8 does not look at them
    # What a 4.9.7 broker was seen to do without: its own decoders of these headers do not look for them.
    "PullMessageRequest": {"commitOffset", "suspendTimeoutMillis", "subVersion"},
    "SendMessageRequest": {"producerGroup", "defaultTopic", "defaultTopicQueueNums"},
    "ResetOffsetRequest": {"isForce"},
    "UpdateGlobalWhiteAddrsRequest": {"aclFileFullPath"},  # not sent before 4.9.3
}
STRICT = {"QueryConsumeQueueRequest": {"topic", "queueId", "index", "count"}}  # nothing can be looked up without them
KINDS = {
    "String": "str",
    "Integer": "32",
    "int": "32",
    "Long": "64",
    "long": "64",
    "Boolean": "bool",
    "boolean": "bool",
}
# Texts here, other types upstream.
TEXTS = {"boundaryType": "BoundaryType"}


# Upstream adds the fields of HeartbeatResponse without a class.
@pytest.mark.parametrize(
    "header_type",
    [header_type for header_type in CLASSES if header_type is not headers.HeartbeatResponse],
    ids=lambda header_type: header_type.__name__,
)
def test_every_header_is_that_of_the_published_classes(header_type: Any) -> None:
    name = header_type.__name__
    plans = {plan.wire_name: plan for plan in header_plan(header_type)}
    upstream = UPSTREAM[name]
    assert set(plans) - {"bname"} == set(upstream) | ADDED.get(name, set())
    for wire_name, (kind, mandatory) in upstream.items():
        plan = plans[wire_name]
        ours = str(plan.range.bits) if plan.range is not None else plan.kind.__name__
        assert ours == ("str" if TEXTS.get(wire_name) == kind else KINDS[kind]), wire_name
        if wire_name not in LENIENT.get(name, set()) | STRICT.get(name, set()):
            assert plan.required == mandatory, wire_name


def test_every_published_header_of_4_9_8_that_somebody_serves_is_here() -> None:
    nobody_serves = {
        "CheckTransactionStateResponse",
        "RegisterFilterServerRequest",
        "RegisterFilterServerResponse",
        "RegisterMessageFilterClassRequest",
        "RegisterOrderTopicRequest",
    }
    without_fields = {"GetAllTopicConfigResponse", "GetConsumerListByGroupResponse"}
    names = {line.split()[0] for line in (GOLDEN / "4.9.8.txt").read_text().splitlines()}
    published = {OUR_NAMES.get(name.removesuffix("Header"), name.removesuffix("Header")) for name in names}
    ours = {header_type.__name__ for header_type in CLASSES} | {"SendMessageRequestHeaderV2"}
    assert published - nobody_serves - without_fields <= ours
