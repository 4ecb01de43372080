"""``refmq namesrv``: a nameserver that a RocketMQ cluster can use."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from refmq.cli._server import print_settings, server_options
from refmq.cli.output import warn
from refmq.nameserver.settings import DEFAULT_PORT, HIDDEN
from refmq.net.nameserver_process import NameserverOptions, plan_nameserver, run_nameserver_process


@click.command("namesrv")
@server_options(
    "namesrv", DEFAULT_PORT, "Where kvConfig.json and the TLS certificate are kept.  [default: ~/namesrv, as upstream]"
)
@click.option("-n", "ignored", hidden=True, help="Accepted and ignored, as upstream does.")
def command(
    conf: Path | None,
    port: int | None,
    listen: str | None,
    folder: Path | None,
    trace: Path | None,
    only_print: bool,
    ignored: str | None,
    as_json: bool,
) -> None:
    """Run a nameserver until SIGTERM or Ctrl-C."""
    plan = plan_nameserver(NameserverOptions(conf, port, listen, folder, trace))
    if only_print:
        shown = {name: value for name, value in sorted(plan.settings.items()) if name not in HIDDEN}
        print_settings(shown, plan.complaints, as_json=as_json)
        return
    asyncio.run(run_nameserver_process(plan, click.echo, warn))
