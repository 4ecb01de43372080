"""Hints of groups: every one leads to the event that it should."""

from __future__ import annotations

from refmq.model.step import Event
from refmq.verify.spec.group_hints import NAMES, HintedGroups, Told, hinted_groups, of_groups, wanted_tags

B, C = "broker-a", "client"
TRACE = [
    Told(B, Event("StartStore", a=1)),
    Told(B, Event("AppendMessage", "", "T", 0, a=0, b=0, c=70, d=10)),
    Told(B, Event("DispatchMessage", "", "T", 0, a=0, b=0, c=5, d=10)),
    Told(B, Event("AppendMessage", "", "T", 0, a=10, b=1, c=71, d=10)),
    Told(B, Event("DispatchMessage", "", "T", 0, a=10, b=1, c=6, d=10)),
    Told(B, Event("Heartbeat", "c1", "g")),
    Told(C, Event("RouteRefresh", "g@c1", "T", a=1)),
    Told(C, Event("AcquireQueue", "g@c1", "T@broker-a", 0, a=0)),
    Told(C, Event("PullMessages", "g@c1", "T@broker-a", 0, a=0, b=2)),
    Told(C, Event("ConsumeStart", "g@c1", "T@broker-a", 0, a=0, b=70)),
    Told(B, Event("CommitOffset", "g", "T", 0, a=-1, b=0)),
    Told(C, Event("Leave", "c1", "g")),
]


def told(groups: HintedGroups, action: str) -> dict[str, int]:
    (row,) = [row for row in groups.made.rows if row.action == action]
    return dict(zip(NAMES[row.action], (row.queue, *row.fields, *row.hints), strict=True))


def test_what_a_consumer_does_is_led_to_the_message() -> None:
    groups = hinted_groups(TRACE, B)
    assert (groups.groups, groups.places, groups.holdings) == (1, 1, 1)
    assert told(groups, "PullMessages")["of"] == 3, "the last one that it brought"
    assert told(groups, "ConsumeStart")["of"] == 1
    assert told(groups, "AcquireQueue")["route"] == 6
    assert told(groups, "CommitOffset")["by_clients"] == 1


def test_a_pull_skips_what_the_group_never_consumes() -> None:
    assert wanted_tags(TRACE) == {("g", "T"): {5}}
    skipped = told(hinted_groups(TRACE, B), "Skipped")
    assert (skipped["queue_offset"], skipped["of"]) == (1, 4)


def test_a_client_that_leaves_has_left_its_queues() -> None:
    groups = hinted_groups(TRACE, B)
    assert [row.action for row in groups.made.rows[-2:]] == ["Leave", "Left"]
    assert told(groups, "Leave")["by_client"] == 1


def test_a_group_with_a_client_that_recorded_nothing_is_judged_by_the_broker_alone() -> None:
    stranger = Told(B, Event("Heartbeat", "c2", "g"))
    assert told(hinted_groups([*TRACE, stranger], B), "CommitOffset")["by_clients"] == 0


def test_a_second_start_is_a_restart() -> None:
    again = [Told(B, Event("PowerLoss")), Told(B, Event("StartStore"))]
    assert told(hinted_groups([*TRACE, *again], B), "RestartBroker")["by_power"] == 1


def test_queues_of_other_brokers_are_left_out() -> None:
    other = Told(C, Event("AcquireQueue", "g@c1", "T@broker-b", 0, a=0))
    assert other not in of_groups([*TRACE, other], B)
    assert of_groups(TRACE, B) == TRACE
