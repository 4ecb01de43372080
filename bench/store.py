"""What the reference store costs per message, and its recovery scan against `zlib.crc32` over the same bytes.

    python -m bench.store [--mib 1024] [--messages 20000] [--json FILE] [--plot FILE]

| measured  | what is timed                                                                    |
|-----------|----------------------------------------------------------------------------------|
| put       | appending messages of 1 KiB to a log on a real disk, without a flush             |
| dispatch  | giving them their queue units and index entries                                  |
| get       | reading them back from their queues, 32 at a time                                |
| stop      | flushing everything and a clean stop                                             |
| recover   | an unclean start that scans the log and builds queues and index again             |
| scan      | the recovery scan alone, over `--mib` MiB of messages of 1 KiB                   |
| fast scan | the same, where C passes the sound records (`--engine fast`)                     |
| crc       | `zlib.crc32` over the same bytes, read the same way: the peer of the scan        |
| inspect   | `refmq store scan`: every record decoded into a value                            |

Scan and CRC are measured in processor time. The scan runs in a process of its own, which reports how much its resident
memory grew. The machine's page cache is warm for all sides: they read the same file one after the other, in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import platform
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import refmq_fast
from refmq.inspect.files import look_at_store
from refmq.inspect.log import Found, read_records
from refmq.model.ids import HostAddress, PhysicalOffset, QueueOffset, TimestampMs
from refmq.net.files import RealDisk
from refmq.protocol.record import BLANK_MAGIC, Record, encode_record
from refmq.store import MessageToStore, ReferenceStore, StoreConfig
from refmq.store.direct import put
from refmq.store.file_sequence import DirectoryNames, FileSequence
from refmq.store.scan import scan_log

MIB = 1 << 20
BODY_BYTES = 1024
QUEUES = 8
ROUNDS = 3
READ_BYTES = 4 * MIB
HOST = HostAddress(bytes([127, 0, 0, 1]), 10911)
NOW_MS = TimestampMs(1_700_000_000_000)
RATIOS_MAX = {"scan": 10.0, "fast scan": 1.0}
"""How many times as long as the CRC of the same bytes a scan may take."""
GROWTH_MAX_BYTES = 100 * MIB


@dataclass(frozen=True, slots=True)
class Measured:
    """One line of the result."""

    name: str
    seconds: float
    messages: int
    bytes: int

    @property
    def microseconds_per_message(self) -> float:
        return self.seconds / self.messages * 1e6

    @property
    def mib_per_second(self) -> float:
        return self.bytes / MIB / self.seconds


@contextmanager
def timed(into: list[float]) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    into.append(time.perf_counter() - begin)


# --- put, dispatch, get, stop, recover --------------------------------------------------------------------------------


def message(number: int) -> MessageToStore:
    return MessageToStore(
        topic="BenchTopic",
        queue_id=number % QUEUES,
        body=number.to_bytes(4, "big") * (BODY_BYTES // 4),
        properties=f"UNIQ_KEY\x01U{number:012}\x02TAGS\x01TagA\x02KEYS\x01key-{number}".encode(),
        born_timestamp_ms=NOW_MS,
        born_host=HOST,
        store_host=HOST,
    )


async def life_of_a_store(folder: Path, count: int) -> list[Measured]:
    config = StoreConfig(
        log_file_bytes=64 * MIB, queue_file_bytes=6_000_000, index_slots=500_000, index_entries=2_000_000
    )
    store = ReferenceStore(RealDisk(folder), config)
    await store.start(NOW_MS)
    messages = [message(number) for number in range(count)]
    seconds: dict[str, list[float]] = {name: [] for name in ("put", "dispatch", "get", "stop", "recover")}
    with timed(seconds["put"]):
        for item in messages:
            put(store, item, NOW_MS)
    with timed(seconds["dispatch"]):
        while store.dispatch(1000):
            pass
    found = 0
    with timed(seconds["get"]):
        for queue_id in range(QUEUES):
            offset = QueueOffset(0)
            while records := (result := store.get_message("BenchTopic", queue_id, offset, 32)).records:
                found += len(records)
                offset = result.next_offset
    assert found == count, f"{found} of {count} messages were read back"
    size = int(store.log_max)
    with timed(seconds["stop"]):
        await store.stop(NOW_MS)
    # As a crash leaves it, with no checkpoint to believe: everything is scanned and dispatched again.
    (folder / "abort").touch()
    (folder / "checkpoint").unlink()
    again = ReferenceStore(RealDisk(folder), config)
    with timed(seconds["recover"]):
        report = await again.start(NOW_MS)
    assert report.valid_to == size, f"recovery found {report.valid_to} of {size} bytes"
    await again.stop(NOW_MS)
    return [Measured(name, times[0], count, size) for name, times in seconds.items()]


# --- scan against crc -------------------------------------------------------------------------------------------------


def write_log(folder: Path, size_bytes: int) -> int:
    """One log file full of records of 1 KiB bodies; returns how many."""
    path = folder / "commitlog" / f"{0:020}"
    path.parent.mkdir(parents=True)
    properties = b"UNIQ_KEY\x01U000000000000\x02TAGS\x01TagA\x02KEYS\x01some-key"
    body = bytes(range(1, 129)) * (BODY_BYTES // 128)
    template = bytearray(
        encode_record(
            Record(
                topic="BenchTopic",
                queue_id=0,
                queue_offset=QueueOffset(0),
                physical_offset=PhysicalOffset(0),
                flag=0,
                sys_flag=0,
                born_timestamp_ms=NOW_MS,
                born_host=HOST,
                store_timestamp_ms=NOW_MS,
                store_host=HOST,
                reconsume_times=0,
                prepared_transaction_offset=0,
                body=body,
                properties=properties,
            )
        )
    )
    count = (size_bytes - 8) // len(template)
    with path.open("wb") as file:
        for number in range(count):
            template[20:28] = number.to_bytes(8, "big")
            template[28:36] = (number * len(template)).to_bytes(8, "big")
            file.write(template)
        rest = size_bytes - count * len(template)
        file.write(rest.to_bytes(4, "big") + BLANK_MAGIC.to_bytes(4, "big") + bytes(rest - 8))
    return count


def resident_bytes(field: str) -> int:
    """VmRSS (now) or VmHWM (the most so far) of this process. `ru_maxrss` would count the parent's memory as well."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise AssertionError(f"the system does not say {field}")


def scan_once(folder: Path, size_bytes: int, in_c: bool) -> tuple[float, int, int]:
    """Processor seconds, records and growth of resident memory of one recovery scan."""
    disk = RealDisk(folder)
    files = FileSequence(disk, DirectoryNames(disk), "commitlog", size_bytes, reserve=True)
    files.load()
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak that the imports made
    before = resident_bytes("VmRSS")
    begin = time.process_time()
    result = scan_log(files, 0, scan_records=refmq_fast.scan_records if in_c else None)
    return time.process_time() - begin, result.records, resident_bytes("VmHWM") - before


def crc_once(folder: Path) -> float:
    path = folder / "commitlog" / f"{0:020}"
    begin = time.process_time()
    value = 0
    with path.open("rb", buffering=0) as file:
        while data := file.read(READ_BYTES):
            value = zlib.crc32(data, value)
    return time.process_time() - begin


def inspect_once(folder: Path) -> tuple[float, int]:
    disk = RealDisk(folder)
    begin = time.perf_counter()
    count = sum(isinstance(item, Found) for item in read_records(disk, look_at_store(disk).log))
    return time.perf_counter() - begin, count


def scan_in_its_own_process(folder: Path, size_bytes: int, in_c: bool) -> tuple[float, int, int]:
    command = [sys.executable, "-m", "bench.store", "--scan", str(folder), "--bytes", str(size_bytes)]
    command += ["--in-c"] if in_c else []
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return float(answer["seconds"]), int(answer["records"]), int(answer["growth"])


def scan_against_crc(folder: Path, size_bytes: int) -> tuple[list[Measured], dict[str, float], int]:
    """The lines, how many times as long as `zlib.crc32` each scan took, and by how much memory grew."""
    count = write_log(folder, size_bytes)
    scans: dict[str, list[float]] = {"scan": [], **({"fast scan": []} if refmq_fast.AVAILABLE else {})}
    crcs, growths = [], []
    for _ in range(ROUNDS):  # in turns, so that all meet the same machine
        crcs.append(crc_once(folder))
        for name, times in scans.items():
            seconds, records, growth = scan_in_its_own_process(folder, size_bytes, name == "fast scan")
            assert records == count, f"the scan found {records} of {count} records"
            times.append(seconds)
            growths.append(growth)
    inspected, records = inspect_once(folder)
    assert records == count
    lines = [
        *[Measured(name, min(times), count, size_bytes) for name, times in scans.items()],
        Measured("crc", min(crcs), count, size_bytes),
        Measured("inspect", inspected, count, size_bytes),
    ]
    return lines, {name: min(times) / min(crcs) for name, times in scans.items()}, max(growths)


# --- the report -------------------------------------------------------------------------------------------------------


def plot(lines: list[Measured], ratios: dict[str, float], path: Path) -> None:
    # By name: matplotlib is an extra, and without it everything but the plot works.
    importlib.import_module("matplotlib").use("Agg")
    plt = importlib.import_module("matplotlib.pyplot")
    figure, axis = plt.subplots(figsize=(8, 4))
    names = [line.name for line in lines]
    values = [line.microseconds_per_message for line in lines]
    axis.barh(names[::-1], values[::-1])
    axis.bar_label(axis.containers[0], fmt="%.2f", padding=3)
    axis.set_xlabel("microseconds per message of 1 KiB")
    axis.set_title(f"Reference store; recovery scan takes {ratios['scan']:.1f} times as long as zlib.crc32")
    figure.tight_layout()
    figure.savefig(path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=1024, help="size of the log that is scanned")
    parser.add_argument("--messages", type=int, default=20_000, help="messages for put, dispatch, get and recover")
    parser.add_argument("--folder", type=Path, help="where the files go; a temporary directory by default")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    parser.add_argument("--plot", type=Path, help="draw the numbers here (needs matplotlib, extra `bench`)")
    parser.add_argument("--scan", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--bytes", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--in-c", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.scan is not None:
        seconds, records, growth = scan_once(options.scan, options.bytes, options.in_c)
        print(json.dumps({"seconds": seconds, "records": records, "growth": growth}))
        return 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        lines = asyncio.run(life_of_a_store(Path(folder) / "life", options.messages))
        scanned, ratios, growth = scan_against_crc(Path(folder) / "scan", options.mib * MIB)
    lines += scanned
    print(f"{'':10}{'messages':>10}{'seconds':>10}{'us/message':>12}{'MiB/s':>10}")
    for line in lines:
        print(
            f"{line.name:10}{line.messages:>10}{line.seconds:>10.3f}"
            f"{line.microseconds_per_message:>12.2f}{line.mib_per_second:>10.1f}"
        )
    for name, ratio in ratios.items():
        print(f"recovery {name} / zlib.crc32 = {ratio:.2f} (at most {RATIOS_MAX[name]:.0f} is asked for)")
    print(f"resident memory grew by {growth / MIB:.1f} MiB (at most {GROWTH_MAX_BYTES // MIB} is asked for)")
    if options.json is not None:
        document = {
            "machine": f"{platform.machine()} {platform.python_implementation()} {platform.python_version()}",
            "lines": [asdict(line) for line in lines],
            "ratios": ratios,
            "growth_bytes": growth,
        }
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    if options.plot is not None:
        plot(lines, ratios, options.plot)
    is_quick = all(ratio <= RATIOS_MAX[name] for name, ratio in ratios.items())
    return 0 if is_quick and growth <= GROWTH_MAX_BYTES else 3


if __name__ == "__main__":
    sys.exit(main())
