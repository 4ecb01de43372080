"""``refmq broker``: a broker of a RocketMQ cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from refmq.broker.settings import shown_settings
from refmq.cli.namesrv import warn
from refmq.cli.output import json_option, print_json
from refmq.net.broker_process import BrokerOptions, plan_broker, run_broker_process


@click.command("broker")
@click.option(
    "-c",
    "conf",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A broker.conf of upstream: Java properties. Settings changed over the wire are written to it.",
)
@click.option("-n", "namesrv", envvar="NAMESRV_ADDR", help="Nameservers, host:port separated by `;`.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    envvar="REFMQ_BROKER_PORT",
    help="The port to listen on; 0 takes a free one.  [default: listenPort of the file, or 10911]",
)
@click.option("--listen", envvar="REFMQ_BROKER_LISTEN", help="The address to listen on.  [default: 0.0.0.0]")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="REFMQ_BROKER_DIR",
    help="The store.  [default: storePathRootDir of the file, or ~/store, as upstream]",
)
@click.option(
    "--trace", type=click.Path(path_type=Path, file_okay=False), help="Record what the broker does in this folder."
)
@click.option("-p", "only_print", is_flag=True, help="Print the settings in effect and exit.")
@json_option
def command(
    conf: Path | None,
    namesrv: str | None,
    port: int | None,
    listen: str | None,
    folder: Path | None,
    trace: Path | None,
    only_print: bool,
    as_json: bool,
) -> None:
    """Run a broker until SIGTERM or Ctrl-C."""
    plan = plan_broker(BrokerOptions(conf, namesrv, port, listen, folder, trace))
    if only_print:
        shown = shown_settings(plan.config, plan.store)
        if as_json:
            print_json({"settings": shown, "complaints": list(plan.complaints)})
            return
        for complaint in plan.complaints:
            warn(complaint)
        for name, value in shown.items():
            click.echo(f"{name}={value}")
        return
    asyncio.run(run_broker_process(plan, click.echo, warn))
