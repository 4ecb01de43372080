"""Check-backs go to the producers of a group."""

from __future__ import annotations

from refmq.protocol.codes import RequestCode, ResponseCode
from tests.broker.harness import Harness
from tests.broker.heartbeats import beat_groups

OK = ResponseCode.SUCCESS


def test_producers_of_a_group_are_asked_in_turns() -> None:
    world = Harness()
    for peer in (1, 2):
        beat_groups(world, peer, producers=("producers",))
    half = {"TRAN_MSG": "true", "PGROUP": "producers", "UNIQ_KEY": "u"}
    assert world.send(properties=half).code == OK
    for _ in range(2):
        world.now += 61_000
        world.round()
    asked = [sum(c.code == RequestCode.CHECK_TRANSACTION_STATE for c in world.peer(n).received) for n in (1, 2)]
    assert asked == [1, 1]
