from __future__ import annotations

from dataclasses import replace

from refmq.model.broker_config import BrokerConfig
from refmq.plane.snapshot import NO_POLICY
from refmq.protocol.command import RemotingCommand, request
from tests.plane.runner import snapshot


class Doorkeeper:
    """Refuses everybody, and remembers whom."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, str]] = []

    def refusal(self, command: RemotingCommand, peer: str) -> str | None:
        self.seen.append((command.code, peer))
        return "not you"


def test_access_control_that_is_off_asks_nobody() -> None:
    keeper = Doorkeeper()
    assert replace(snapshot(), access=keeper).refusal(request(10), "10.1.2.3:4") is None
    assert keeper.seen == []


def test_access_control_that_is_on_asks_its_policy_and_without_one_lets_nobody_in() -> None:
    keeper, on = Doorkeeper(), snapshot(BrokerConfig(acl_enable=True))
    assert replace(on, access=keeper).refusal(request(10), "10.1.2.3:4") == "not you"
    assert keeper.seen == [(10, "10.1.2.3:4")]
    assert on.refusal(request(10), "10.1.2.3:4") == NO_POLICY
