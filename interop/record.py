"""Make the golden files of tests/golden from the real RocketMQ: ``python -m interop.record store`` or ``frames``.

The files are kept in git, so this runs only when there is something new to record.
"""

from __future__ import annotations

import base64
import json
import re
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from interop.processes import wait_until
from interop.recorder import Captured, Recorder
from interop.rocketmq import TINY_STORE, Broker, Clients, Nameserver
from refmq.errors import RefmqError
from refmq.protocol.frame import decode

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


# Frames ------------------------------------------------------------------------------------------------------------

FRAMES_PER_KIND = 2
FRAME_BYTES_MAX = 30_000  # longer ones show nothing more

# Longer than the tests need, shorter than a recording should wait.
QUICK_TRANSACTIONS = {"transactionTimeOut": "1000", "transactionCheckInterval": "2000"}


def admin_commands(version: str, nameserver: str, broker: str) -> list[list[str]]:
    """mqadmin commands that together send every request for which there is a command."""
    topic, group = f"Topic{version.replace('.', '')}", f"Group{version.replace('.', '')}"
    at_nameserver = [
        ["clusterList"],
        ["topicRoute", "-t", topic],
        ["topicRoute", "-t", "NoSuchTopic"],
        ["topicList"],
        ["topicList", "-c"],
        ["topicClusterList", "-t", topic],
        ["updateKvConfig", "-s", "golden", "-k", "key", "-v", "value"],
        ["deleteKvConfig", "-s", "golden", "-k", "key"],
        ["updateOrderConf", "-t", topic, "-m", "put", "-v", "broker-a:4"],
        ["updateOrderConf", "-t", topic, "-m", "get"],
        ["updateOrderConf", "-t", topic, "-m", "delete"],
        ["wipeWritePerm", "-b", "broker-a"],
        ["addWritePerm", "-b", "broker-a"],
        ["getNamesrvConfig"],
        ["updateNamesrvConfig", "-k", "orderMessageEnable", "-v", "false"],
    ]
    at_broker = [
        ["updateTopic", "-b", broker, "-t", "GoldenNew", "-r", "2", "-w", "2"],
        ["updateTopicPerm", "-b", broker, "-t", "GoldenNew", "-p", "4"],
        ["deleteTopic", "-c", "DefaultCluster", "-t", "GoldenNew"],
        ["updateSubGroup", "-b", broker, "-g", "GoldenNewGroup"],
        ["deleteSubGroup", "-b", broker, "-g", "GoldenNewGroup"],
        ["topicStatus", "-t", topic],
        ["brokerStatus", "-b", broker],
        ["getBrokerConfig", "-b", broker],
        ["updateBrokerConfig", "-b", broker, "-k", "flushDelayOffsetInterval", "-v", "10000"],
        ["consumerProgress", "-g", group],
        ["consumerConnection", "-g", group],
        ["producerConnection", "-g", "producer-plain", "-t", topic],
        ["brokerConsumeStats", "-b", broker],
        ["cleanExpiredCQ", "-b", broker],
        ["cleanUnusedTopic", "-b", broker],
        ["deleteExpiredCommitLog", "-b", broker],
        ["queryMsgByKey", "-t", topic, "-k", "plain-0"],
        ["queryMsgByOffset", "-t", topic, "-b", "broker-a", "-i", "0", "-o", "0"],
        ["queryCq", "-t", topic, "-q", "0", "-i", "0", "-b", broker],
        ["cloneGroupOffset", "-s", group, "-d", "GoldenClone", "-t", topic],
        ["statsAll", "-t", topic],
        ["producer", "-b", broker],
    ]
    if version == "4.9.8":  # 5.x has users instead
        at_broker += [
            [
                "updateAclConfig",
                "-b",
                broker,
                "-a",
                "golden-key",
                "-s",
                "golden-secret",
                "-t",
                f"{topic}=SUB",
                "-m",
                "false",
            ],
            ["updateGlobalWhiteAddr", "-b", broker, "-g", "10.0.0.*,10.0.1.7"],
            ["clusterAclConfigVersion", "-b", broker],
            ["deleteAclConfig", "-b", broker, "-a", "golden-key"],
        ]
    return [[*command, "-n", nameserver] for command in [*at_nameserver, *at_broker]]


def drive(recorder: Recorder, clients: Clients, nameserver: str, broker: Broker, port: int) -> None:
    """Let the clients of one version do everything that they can."""
    version = clients.version
    topic, group = f"Topic{version.replace('.', '')}", f"Group{version.replace('.', '')}"

    def run(main: str, *arguments: str, jvm: tuple[str, ...] = ()) -> None:
        recorder.command = f"{main} {' '.join(arguments)} ({' '.join((version, *jvm))})"
        print(recorder.command, flush=True)
        clients.run(main, nameserver, *arguments, jvm=jvm)

    kinds = ("plain:3", "big:1", "batch:2", "delay:1", "oneway:1", "commit:1", "rollback:1", "unknown:1")
    binary = ("-Drocketmq.serialize.type=ROCKETMQ",)
    run("Produce", topic, *kinds)
    run("Produce", f"{topic}Binary", "plain:2", "batch:2", jvm=binary)
    run("Consume", topic, group, "concurrent", "8")
    run("Consume", topic, f"{group}Tagged", "concurrent", "2", "even")
    run("Consume", topic, f"{group}Ordered", "orderly", "8")
    with suppress(RefmqError):  # a 5.3.3 client sends 361 here, which a 4.9.7 broker does not serve
        run("Consume", topic, f"{group}Lite", "lite", "8")
    run("Consume", topic, f"{group}Retry", "retry", "8")
    run("Consume", f"{topic}Binary", f"{group}Binary", "concurrent", "4", jvm=binary)
    where = (f"127.0.0.1:{port}", str(broker.port), str(port))
    run("Calls", topic, f"{group}Calls", *where)
    # The long names of fields, which clients use no more unless they are told to: 10 and 324 instead of 310 and 325.
    run("Calls", topic, f"{group}Long", *where, jvm=("-Dorg.apache.rocketmq.client.sendSmartMsg=false",))
    run_admin(recorder, clients, admin_commands(version, nameserver, f"127.0.0.1:{port}"))


def run_admin(recorder: Recorder, clients: Clients, commands: Sequence[Sequence[str]]) -> None:
    """Run mqadmin commands in one JVM, and note with each frame which of them was running."""
    arguments = [word for command in commands for word in ("--", *command)][1:]
    child = clients.start("Admin", *arguments)

    def ended() -> bool:
        begun = re.findall(r"^=== (\d+)$", child.output(), flags=re.MULTILINE)
        if begun:
            recorder.command = f"mqadmin {' '.join(commands[int(begun[-1])][:-2])} ({clients.version})"
        return not child.alive

    wait_until(ended, "the end of mqadmin", 300)
    assert child.wait(1) == 0, child.output()[-500:]


def record_frames() -> None:
    """Frames of every request and response that real clients, brokers and nameservers exchange."""
    recorder = Recorder().start()
    with tempfile.TemporaryDirectory(prefix="refmq-record-") as folder:
        root = Path(folder)
        with Nameserver(root / "namesrv") as nameserver:
            seen_port = recorder.listen(nameserver.port, "nameserver", rewrite=False)
            seen = f"127.0.0.1:{seen_port}"
            recorder.command = "a master starts"
            settings = {"enablePropertyFilter": "true", **QUICK_TRANSACTIONS}
            with Broker(root / "broker", seen, settings=settings) as broker:
                port = recorder.listen(broker.port, "broker")
                recorder.listen(broker.port - 2, "broker, VIP port", rewrite=False, port=port - 2)
                recorder.command = "a slave starts"
                slave_settings = {"brokerRole": "SLAVE", "brokerId": "1"}
                slave = Broker(root / "slave", seen, settings=slave_settings).start()
                for version in ("4.9.8", "5.3.3"):
                    drive(recorder, Clients(version, root / version), seen, broker, port)
                slave.stop()
                recorder.command = "a broker with compressed registration starts and stops"
                asking = {"compressedRegister": "true", "forceRegister": "false"}
                with Broker(root / "asking", seen, "broker-b", asking):
                    wait_until(lambda: any(b'"code":322,' in each.frame for each in recorder.captured), "322", 60)
                recorder.command = "a broker stops"
    recorder.stop()
    write_frames(recorder.captured)


def write_frames(captured: Sequence[Captured]) -> None:
    """Keep a few of each kind. A kind is what a frame says, who says it to whom, and in which serialization."""
    asked: dict[tuple[int, bool, int], int] = {}
    kept: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for each in captured:
        command = decode(each.frame)
        if command.is_response:
            request_code = asked.get((each.connection, not each.to_server, command.opaque), -1)
        else:
            request_code = command.code
            asked[each.connection, each.to_server, command.opaque] = command.code
        record: dict[str, object] = {
            "request_code": request_code,
            "kind": "response" if command.is_response else "one-way request" if command.is_oneway else "request",
            "response_code": command.code if command.is_response else None,
            "version": command.version,
            "serialize_type": command.serialize_type.name,
            "from": "client" if each.to_server else each.server,
            "to": each.server if each.to_server else "client",
            "command": each.command,
            "frame": base64.b64encode(each.frame).decode(),
        }
        kind = tuple(value for name, value in record.items() if name not in ("command", "frame"))
        of_kind = kept.setdefault(kind, [])
        if len(of_kind) < FRAMES_PER_KIND and (len(each.frame) <= FRAME_BYTES_MAX or not of_kind):
            of_kind.append(record)
    records = sorted((record for of_kind in kept.values() for record in of_kind), key=order_of_record)
    target = GOLDEN / "frames" / "captured.jsonl"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("".join(json.dumps(record) + "\n" for record in records))
    print(f"{len(records)} frames of {len(kept)} kinds, {target.stat().st_size} bytes")


def order_of_record(record: dict[str, object]) -> tuple[int, str]:
    code = record["request_code"]
    assert isinstance(code, int)
    return code, str(record["kind"])


def main(arguments: Sequence[str]) -> int:
    match arguments:
        case ["store"]:
            record_store("clean", clean=True)
            record_store("killed", clean=False)
        case ["frames"]:
            record_frames()
        case _:
            print("usage: python -m interop.record store|frames", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
