"""Make the golden files of tests/golden from the real RocketMQ: ``python -m interop.record store``.

The files are kept in git, so this runs only when there is something new to record.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from interop.rocketmq import TINY_STORE, Broker, Clients, Nameserver

GOLDEN = Path(__file__).parent.parent / "tests" / "golden"
VERSION = "4.9.7"
ZIP_TIME = (1980, 1, 1, 0, 0, 0)  # the same bytes give the same archive


def zip_folder(folder: Path, target: Path, extra: dict[str, str]) -> None:
    """Pack every file and every empty folder below ``folder``, and ``extra`` texts beside them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in sorted(folder.rglob("*")):
            name = f"store/{path.relative_to(folder).as_posix()}"
            if path.is_file():
                archive.writestr(zipfile.ZipInfo(name, ZIP_TIME), path.read_bytes(), zipfile.ZIP_DEFLATED)
            elif not any(path.iterdir()):
                archive.writestr(zipfile.ZipInfo(f"{name}/", ZIP_TIME), b"")
        for name, text in extra.items():
            archive.writestr(zipfile.ZipInfo(name, ZIP_TIME), text, zipfile.ZIP_DEFLATED)


def record_store(name: str, *, clean: bool, settings: dict[str, str] | None = None) -> None:
    """A small store with every kind of message in it, stopped cleanly or by ``kill -9``."""
    with tempfile.TemporaryDirectory(prefix="refmq-record-") as folder:
        root = Path(folder)
        with Nameserver(root / "namesrv") as nameserver:
            broker = Broker(root / "broker", nameserver.address, settings={**TINY_STORE, **(settings or {})}).start()
            clients = Clients("4.9.8", root / "clients")
            kinds = ("plain:220", "big:4", "batch:5", "delay:3", "commit:3", "rollback:2", "unknown:2")
            lines = clients.run("Produce", nameserver.address, "GoldenTopic", *kinds)
            lines += clients.run("Produce", nameserver.address, "OtherTopic", "plain:12")
            lines += clients.run("Consume", nameserver.address, "GoldenTopic", "GoldenGroup", "concurrent", "235")
            lines += clients.run("Consume", nameserver.address, "OtherTopic", "RetryGroup", "retry", "12")
            if clean:
                broker.stop()
            else:
                broker.kill()
            conf = "".join(
                f"{key}={value}\n" for key, value in broker.settings.items() if not value.startswith(str(root))
            )
            extra = {"messages.txt": "\n".join(lines) + "\n", "broker.conf": conf}
            zip_folder(broker.store, GOLDEN / "store" / f"{name}-{VERSION}.zip", extra)


def main(arguments: Sequence[str]) -> int:
    match arguments:
        case ["store"]:
            record_store("clean", clean=True)
            record_store("killed", clean=False)
        case _:
            print("usage: python -m interop.record store", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
