"""What a client makes of the route of a topic: where it may send, what it may read, and whom it has to ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from refmq.errors import UsageError
from refmq.model.ids import MessageQueue
from refmq.protocol.bodies.route import TopicRouteData

MASTER_ID: Final = 0
PERM_READ: Final = 4
PERM_WRITE: Final = 2


def parse_name_servers(given: str | list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """The addresses in ``host:port;host:port`` or a list of addresses. An ``http://`` endpoint counts as its host."""
    texts = given.replace(",", ";").split(";") if isinstance(given, str) else list(given)
    found = tuple(dict.fromkeys(text.strip().rpartition("/")[2] for text in texts if text.strip()))
    if not found:
        raise UsageError("A client needs the address of a nameserver, as in 127.0.0.1:9876, or NAMESRV_ADDR.")
    return found


def publish_queues(topic: str, route: TopicRouteData) -> tuple[MessageQueue, ...]:
    """The queues a producer may send to, in the order in which every client lists them.

    An order configuration (``broker:n;...``) is taken as it is. Otherwise a queue counts when its broker may be written
    to and has a master.
    """
    if route.order_topic_conf:
        found = []
        for item in route.order_topic_conf.split(";"):
            broker, _, count = item.partition(":")
            if broker and count.isascii() and count.isdigit():
                found += [MessageQueue(topic, broker, queue_id) for queue_id in range(int(count))]
        return tuple(found)
    masters = {data.broker_name for data in route.broker_datas if MASTER_ID in data.broker_addrs}
    return tuple(
        MessageQueue(topic, data.broker_name, queue_id)
        for data in sorted(route.queue_datas, key=lambda data: data.broker_name)
        if data.perm & PERM_WRITE and data.broker_name in masters
        for queue_id in range(data.write_queue_nums)
    )


def subscribe_queues(topic: str, route: TopicRouteData) -> tuple[MessageQueue, ...]:
    """The queues a group shares, sorted as every member sorts them."""
    return tuple(
        sorted(
            MessageQueue(topic, data.broker_name, queue_id)
            for data in route.queue_datas
            if data.perm & PERM_READ
            for queue_id in range(data.read_queue_nums)
        )
    )


def default_route(route: TopicRouteData, queues: int) -> TopicRouteData:
    """The route of the template topic as that of a topic which is still to be created, with ``queues`` at most."""
    cut = tuple(
        replace(
            data,
            read_queue_nums=min(queues, data.read_queue_nums),
            write_queue_nums=min(queues, data.read_queue_nums),
        )
        for data in route.queue_datas
    )
    return replace(route, queue_datas=cut)


def master_of(route: TopicRouteData, broker: str) -> str | None:
    """The address of a broker's master."""
    return addresses_of(route, broker).get(MASTER_ID)


def addresses_of(route: TopicRouteData, broker: str) -> Mapping[int, str]:
    for data in route.broker_datas:
        if data.broker_name == broker:
            return data.broker_addrs
    return {}


@dataclass(frozen=True, slots=True)
class Reader:
    """Where to pull from."""

    address: str
    is_slave: bool


def reader_of(route: TopicRouteData, broker: str, broker_id: int) -> Reader | None:
    """Where to pull from when ``broker_id`` was suggested: there, at the next slave, or at whoever is left."""
    addresses = addresses_of(route, broker)
    wanted = [broker_id] if broker_id == MASTER_ID else [broker_id, broker_id + 1]
    for candidate in (*wanted, *sorted(addresses)):
        if candidate in addresses:
            return Reader(addresses[candidate], candidate != MASTER_ID)
    return None


def all_addresses(route: TopicRouteData) -> tuple[str, ...]:
    """Every address of every broker of a topic, masters first."""
    found = [(broker_id, address) for data in route.broker_datas for broker_id, address in data.broker_addrs.items()]
    return tuple(dict.fromkeys(address for _, address in sorted(found)))


def masters(route: TopicRouteData) -> tuple[str, ...]:
    """The address of every master of a topic."""
    return tuple(
        data.broker_addrs[MASTER_ID]
        for data in sorted(route.broker_datas, key=lambda data: data.broker_name)
        if MASTER_ID in data.broker_addrs
    )
