"""``refmq serve``: RocketMQ on this machine. For now that is a nameserver; the broker follows."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from refmq.cli.namesrv import warn
from refmq.nameserver.settings import DEFAULT_PORT
from refmq.net.nameserver_process import NameserverOptions, plan_nameserver, run_nameserver_process


@click.command("serve")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=DEFAULT_PORT, show_default=True, help="0 takes a free one."
)
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".refmq"),
    show_default=True,
    help="Where everything is kept.",
)
def command(port: int, folder: Path) -> None:
    """Run a nameserver on loopback until Ctrl-C. There is no broker in it yet."""
    plan = plan_nameserver(NameserverOptions(port=port, listen="127.0.0.1", folder=folder / "namesrv"))
    warn("this version serves a nameserver only; start a broker of upstream with it as namesrvAddr")
    asyncio.run(run_nameserver_process(plan, click.echo, warn))
