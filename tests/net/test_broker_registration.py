"""A broker and its nameservers: what is told when."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from refmq.model.step import Event
from refmq.net.nameserver import Nameserver
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request
from refmq.protocol.headers.codec import encode_header
from refmq.protocol.headers.nameserver import GetRouteInfoRequest
from tests.net.broker_requests import TIMEOUT_S, create_topic_request
from tests.net.broker_support import FREE_PORT, serving_broker
from tests.net.support import asking, run

pytestmark = pytest.mark.usefixtures("each_engine")


@pytest.mark.parametrize("force", [True, False])
def test_a_registration_without_force_asks_first_and_registers_only_what_is_new(force: bool) -> None:
    async def story() -> None:
        events: list[Event] = []
        nameserver = Nameserver(record=events.append)
        host, port = await nameserver.start("127.0.0.1", 0)
        config = replace(FREE_PORT, namesrv_addr=f"{host}:{port}", force_register=force)

        def heard() -> list[str]:
            actions = [event.action for event in events]
            events.clear()
            return actions

        async with serving_broker(config) as (node, address), asking() as client:
            assert heard() == ["RegisterBroker"]
            await node.registration.register_again()
            assert heard() == (["RegisterBroker"] if force else ["QueryDataVersion"])
            await client.invoke(address, create_topic_request("New", 4), TIMEOUT_S)
            assert heard() == ["RegisterBroker"]
            broker = node.broker
            version = replace(broker.state.topics.version, counter=77)
            broker.state = replace(broker.state, topics=replace(broker.state.topics, version=version))
            await node.registration.register_again()
            assert "RegisterBroker" in heard()
            await nameserver.close(1)
            await node.registration.register_again()  # a nameserver that is gone costs a log line

    run(story())


def test_a_nameserver_that_does_not_answer_makes_the_others_hear_everything() -> None:
    """Two nameservers, one of them gone: without force the broker cannot know what that one knew."""

    async def story() -> None:
        events: list[Event] = []
        nameserver, gone = Nameserver(record=events.append), Nameserver()
        addresses = [await each.start("127.0.0.1", 0) for each in (nameserver, gone)]
        namesrv_addr = ";".join(f"{host}:{port}" for host, port in addresses)
        config = replace(FREE_PORT, namesrv_addr=namesrv_addr, force_register=False)
        async with serving_broker(config) as (node, _):
            events.clear()
            await node.registration.register_again()
            assert [event.action for event in events] == ["QueryDataVersion"]
            await gone.close(1)
            events.clear()
            await node.registration.register_again()
            assert [event.action for event in events] == ["QueryDataVersion", "RegisterBroker"]
        await nameserver.close(1)

    run(story())


def test_a_topic_of_a_client_is_in_the_route_although_an_operator_made_another_meanwhile() -> None:
    """Both registrations have the version of the whole table, so both have to hold all of it."""

    async def story() -> None:
        nameserver = Nameserver()
        host, port = await nameserver.start("127.0.0.1", 0)
        async with (
            serving_broker(replace(FREE_PORT, namesrv_addr=f"{host}:{port}")) as (_, address),
            asking() as client,
        ):
            made = [
                client.invoke(address, create_topic_request(name, 4), TIMEOUT_S) for name in ("One", "Two", "Three")
            ]
            await asyncio.gather(*made)
            for name in ("One", "Two", "Three"):
                header = encode_header(GetRouteInfoRequest(topic=name))
                asked = request(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
                answer = await client.invoke(f"{host}:{port}", asked, TIMEOUT_S)
                assert answer.code == ResponseCode.SUCCESS, name
        await nameserver.close(1)

    run(story())
