"""``refmq serve``: RocketMQ on this machine, nameserver and broker in one process on loopback."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from click.core import ParameterSource

from refmq.cli._server import engine_option, trace_option
from refmq.cli.output import warn
from refmq.model.broker_config import BrokerConfig
from refmq.model.disk import Disk
from refmq.nameserver.settings import DEFAULT_PORT
from refmq.net.broker_node import BrokerNode
from refmq.net.broker_process import LAPTOP_STORE, BrokerPlan, run_serve_process
from refmq.net.clock import wall_ms
from refmq.net.engines import EngineChoice
from refmq.net.files import RealDisk
from refmq.net.nameserver_process import plan_tls
from refmq.sim.disk import SimulatedDisk

LOOPBACK = "127.0.0.1"
MEMORY_BYTES = 512 << 20
"""How much `--in-memory` keeps before the oldest messages go."""


@click.command("serve")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="The nameserver's port; 0 takes a free one.",
)
@click.option(
    "--broker-port",
    type=click.IntRange(0, 65535),
    default=10911,
    show_default=True,
    help="The broker's port; 0 takes a free one.",
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".refmq"),
    show_default=True,
    help="Where everything is kept.",
)
@click.option("--in-memory", is_flag=True, help="Keep nothing: everything is gone at the end.")
@trace_option("each of the two")
@engine_option
@click.pass_context
def command(
    context: click.Context,
    port: int,
    broker_port: int,
    folder: Path,
    in_memory: bool,
    trace: Path | None,
    engine: EngineChoice,
) -> None:
    """Run a nameserver and a broker on loopback until Ctrl-C."""
    if in_memory and context.get_parameter_source("folder") is not ParameterSource.DEFAULT:
        raise click.UsageError("--in-memory keeps nothing, so there is nothing for --dir")
    config = BrokerConfig(
        listen_port=broker_port,
        broker_ip1=LOOPBACK,
        enable_property_filter=True,
        trace_topic_enable=True,
        broker_fast_failure_enable=False,  # a busy laptop has no other broker that would be faster
    )
    plan = BrokerPlan(config, LAPTOP_STORE, (), LOOPBACK, folder, folder, folder, trace, engine=engine)
    disk: Disk
    if in_memory:
        disk, kv_disk = SimulatedDisk(clock=wall_ms, capacity_bytes=MEMORY_BYTES), None
        with TemporaryDirectory(prefix="refmq-") as passing:
            tls = plan_tls(plan.tls, Path(passing), warn)  # read at once, so the files need not stay
    else:
        (folder / "store").mkdir(parents=True, exist_ok=True)
        (folder / "namesrv").mkdir(parents=True, exist_ok=True)
        disk, kv_disk = RealDisk(folder / "store"), RealDisk(folder / "namesrv")
        tls = plan_tls(plan.tls, folder / "tls", warn)
    asyncio.run(run_serve_process(plan, port, disk, kv_disk, tls, _say))


def _say(address: str, node: BrokerNode) -> None:
    click.echo(f"RocketMQ is up: nameserver {address}, broker {node.broker.config.address}. Ctrl-C ends it.")
    click.echo(f'  Java    producer.setNamesrvAddr("{address}");')
    click.echo(f'  Go      producer.WithNameServer(primitive.NamesrvAddr{{"{address}"}})')
    click.echo(f'  Python  refmq.Producer("{address}", group="group")')
    click.echo(f"  engine: {node.engine.name}")
