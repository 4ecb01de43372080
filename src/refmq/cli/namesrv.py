"""``refmq namesrv``: a nameserver that a RocketMQ cluster can use."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from refmq.cli.output import json_option, print_json
from refmq.nameserver.settings import HIDDEN
from refmq.net.nameserver_process import NameserverOptions, plan_nameserver, run_nameserver_process


@click.command("namesrv")
@click.option(
    "-c",
    "conf",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A namesrv.conf of upstream: Java properties. Settings changed over the wire are written to it.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    envvar="REFMQ_NAMESRV_PORT",
    help="The port to listen on; 0 takes a free one.  [default: listenPort of the file, or 9876]",
)
@click.option("--listen", envvar="REFMQ_NAMESRV_LISTEN", help="The address to listen on.  [default: 0.0.0.0]")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="REFMQ_NAMESRV_DIR",
    help="Where kvConfig.json and the TLS certificate are kept.  [default: ~/namesrv, as upstream]",
)
@click.option(
    "--trace", type=click.Path(path_type=Path, file_okay=False), help="Record what the nameserver does in this folder."
)
@click.option("-p", "only_print", is_flag=True, help="Print the settings in effect and exit.")
@click.option("-n", "ignored", hidden=True, help="Accepted and ignored, as upstream does.")
@json_option
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
        if as_json:
            print_json({"settings": shown, "unknown": list(plan.complaints)})
            return
        for complaint in plan.complaints:
            warn(complaint)
        for name, value in shown.items():
            click.echo(f"{name}={value}")
        return
    asyncio.run(run_nameserver_process(plan, click.echo, warn))


def warn(message: str) -> None:
    click.echo(f"refmq: {message}", err=True)
