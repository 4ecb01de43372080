"""Looks at the tables of a broker that serves, and at its files."""

from __future__ import annotations

import json
from collections.abc import Iterator

from refmq.broker.config_files import GROUPS_FILE, TOPICS_FILE
from refmq.net.broker_node import BrokerNode
from refmq.protocol.bodies.codec import JsonStyle, encode_body
from refmq.sim.disk import SimulatedDisk
from refmq.verify.oracles.tables import SeenTable


def seen_tables(node: BrokerNode, disk: SimulatedDisk) -> Iterator[SeenTable]:
    """Topics and groups: tables that are saved whenever they change."""
    contents, broker = disk.contents(), node.broker
    for file, known in ((TOPICS_FILE, broker.state.topics.wrapper()), (GROUPS_FILE, broker.state.groups.wrapper())):
        saved = contents.get(f"config/{file}")
        in_memory = json.loads(encode_body(known, JsonStyle.FASTJSON))
        is_as_at_first = saved is None and not in_memory["dataVersion"]["counter"]
        if not is_as_at_first:
            yield SeenTable(broker.config.broker_name, file, in_memory, json.loads(saved) if saved else None)
