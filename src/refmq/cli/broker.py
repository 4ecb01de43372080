"""``refmq broker``: a broker of a RocketMQ cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from refmq.broker.settings import shown_settings
from refmq.cli._server import engine_option, print_settings, server_options
from refmq.cli.output import warn
from refmq.net.broker_process import BrokerOptions, plan_broker, run_broker_process
from refmq.net.engines import EngineChoice


@click.command("broker")
@server_options("broker", 10911, "The store.  [default: storePathRootDir of the file, or ~/store, as upstream]")
@click.option("-n", "namesrv", envvar="NAMESRV_ADDR", help="Nameservers, host:port separated by `;`.")
@engine_option
def command(
    conf: Path | None,
    namesrv: str | None,
    port: int | None,
    listen: str | None,
    folder: Path | None,
    trace: Path | None,
    engine: EngineChoice,
    only_print: bool,
    as_json: bool,
) -> None:
    """Run a broker until SIGTERM or Ctrl-C."""
    plan = plan_broker(BrokerOptions(conf, namesrv, port, listen, folder, trace, engine))
    if only_print:
        print_settings(shown_settings(plan.config, plan.store), plan.complaints, as_json=as_json)
        return
    asyncio.run(run_broker_process(plan, click.echo, warn))
