"""An application as a user writes one from the book alone, with its tests on the fixture.

It reserves stock for orders, in the order of each article; ships what is paid, frees what is not paid in ten minutes.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field

import refmq as package
from refmq.testing import TestCluster

TEN_MINUTES = 14  # the delay level


@dataclass
class Warehouse:
    namesrv: str
    stock: dict[str, int]
    reserved: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.app = package.App(self.namesrv, producer_group="warehouse")
        listen = self.app.listener
        listen("Orders", group="reserve", mode="orderly", start="first", max_retries=2)(self.on_order)
        listen("Payments", group="ship", start="first")(self.on_payment)
        listen("Deadlines", group="release", start="first")(self.on_deadline)

    async def on_order(self, message: package.ReceivedMessage) -> None:
        order = json.loads(message.body)
        if order["id"] in self.reserved:
            return  # at least once: it came again
        if self.stock[order["article"]] < 1:  # an unknown article raises KeyError
            await self.tell("SoldOut", order)
            return
        self.stock[order["article"]] -= 1
        self.reserved[order["id"]] = order["article"]
        await self.app.producer.send("Deadlines", message.body, keys=[order["id"]], delay_level=TEN_MINUTES)

    async def on_payment(self, message: package.ReceivedMessage) -> None:
        order = json.loads(message.body)
        if self.reserved.pop(order["id"], None) is not None:
            await self.tell("Shipped", order)

    async def on_deadline(self, message: package.ReceivedMessage) -> None:
        order = json.loads(message.body)
        article = self.reserved.pop(order["id"], None)
        if article is not None:
            self.stock[article] += 1
            await self.tell("Cancelled", order)

    async def tell(self, what: str, order: dict[str, str]) -> None:
        await self.app.producer.send(
            package.Message("Outcomes", json.dumps(order).encode(), tag=what, keys=(order["id"],))
        )


def order(number: int, article: str = "lamp") -> bytes:
    return json.dumps({"id": f"o-{number}", "article": article}).encode()


def test_a_paid_order_is_shipped(refmq: TestCluster) -> None:
    async def story() -> None:
        house = Warehouse(refmq.namesrv, {"lamp": 2})
        async with house.app:
            refmq.send("Orders", order(1))
            await refmq.wait_for_async(lambda: bool(house.reserved))
            refmq.send("Payments", order(1))
            await refmq.wait_for_async(lambda: refmq.messages("Outcomes").tags() == ["Shipped"])
            await refmq.clock.advance_async(minutes=11)
        assert house.stock == {"lamp": 1}

    asyncio.run(story())


def test_what_is_not_paid_in_ten_minutes_is_free_again(refmq: TestCluster) -> None:
    async def story() -> None:
        house = Warehouse(refmq.namesrv, {"lamp": 1})
        async with house.app:
            refmq.send("Orders", order(1))
            refmq.send("Orders", order(2))
            await refmq.wait_for_async(lambda: refmq.messages("Outcomes").tags() == ["SoldOut"])
            await refmq.clock.advance_async(minutes=9)
            assert house.stock == {"lamp": 0}
            await refmq.clock.advance_async(minutes=2)
            assert house.stock == {"lamp": 1}
            assert refmq.messages("Outcomes").tags() == ["SoldOut", "Cancelled"]

    asyncio.run(story())


def test_an_unknown_article_is_a_dead_letter_and_holds_nobody_up(refmq: TestCluster) -> None:
    async def story() -> None:
        house = Warehouse(refmq.namesrv, {"lamp": 1})
        async with house.app:
            refmq.send("Orders", order(1, "unicorn"))
            refmq.send("Orders", order(2))
            await refmq.wait_for_async(lambda: "o-2" in house.reserved)
            await refmq.wait_for_async(lambda: len(refmq.dlq("reserve")) == 1)
        assert refmq.dlq("reserve").bodies() == [order(1, "unicorn")]

    asyncio.run(story())
