"""What two brokers may differ in: when they stored a message. All else of an answer or a file must be the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from refmq.protocol import fastjson
from refmq.protocol.codes import RequestCode
from refmq.protocol.command import RemotingCommand

BORN_TIMESTAMP_AT: Final = 40
BORN_HOST_AT: Final = 48
STORE_TIMESTAMP_AT: Final = 56
STORE_HOST_AT: Final = 64
HOST_BYTES: Final = 8
HEAD_BYTES: Final = STORE_HOST_AT + HOST_BYTES
"""As far as a record whose producer has an IPv4 address is looked at."""
WITH_RECORDS: Final = {RequestCode.PULL_MESSAGE, RequestCode.QUERY_MESSAGE, RequestCode.VIEW_MESSAGE_BY_ID}
TIMED_FIELDS: Final = {"indexLastUpdateTimestamp", "indexLastUpdatePhyoffset"}
"""How far the index is: a broker's own messages (an offset that moved) come when they come."""
UNIT_BYTES: Final = 20
LONG_AGO_MS: Final = 1 << 40
"""What is greater is a time, and not the code of a tag."""
INDEX_HEADER_BYTES: Final = 40
INDEX_TIMES_BYTES: Final = 16
INDEX_ENTRY_BYTES: Final = 20
SECONDS_AT: Final = 12
"""In an entry of the index."""
TIMED_KEYS: Final = {"dataVersion", "timestamp"}


def mask_records(data: bytes) -> bytes:
    """Records one after another, with zeros for the time at which each was stored, and for that at which a broker made
    one of its own."""
    masked = bytearray(data)
    at = 0
    while at + HEAD_BYTES <= len(masked):
        size = int.from_bytes(masked[at : at + 4], "big")
        if size < HEAD_BYTES or masked[at + 4 : at + 6] != b"\xda\xa3":
            break  # a blank record, or the end
        masked[at + STORE_TIMESTAMP_AT : at + STORE_TIMESTAMP_AT + 8] = bytes(8)
        born, store = (masked[at + host : at + host + HOST_BYTES] for host in (BORN_HOST_AT, STORE_HOST_AT))
        if born == store:
            masked[at + BORN_TIMESTAMP_AT : at + BORN_TIMESTAMP_AT + 8] = bytes(8)
        at += size
    return bytes(masked)


def mask_answer(code: int, answer: RemotingCommand) -> tuple[Any, ...]:
    """An answer to a request of this code as a value that can be compared and shown."""
    fields = {name: value for name, value in answer.fields.items() if name not in TIMED_FIELDS}
    body = mask_records(answer.body) if code in WITH_RECORDS else answer.body
    return answer.code, answer.remark, tuple(sorted(fields.items())), body, answer.serialize_type.name


def mask_file(path: Path, index_slots: int) -> bytes:
    """A file of a store."""
    data = path.read_bytes()
    folder = path.parent
    if path.name == "checkpoint":
        return b""
    if folder.name == "commitlog":
        return mask_records(data)
    if folder.name == "index":
        begin = INDEX_HEADER_BYTES + 4 * index_slots
        masked = bytearray(data)
        masked[:INDEX_TIMES_BYTES] = bytes(INDEX_TIMES_BYTES)
        for at in range(begin, len(masked) - INDEX_ENTRY_BYTES + 1, INDEX_ENTRY_BYTES):
            masked[at + SECONDS_AT : at + SECONDS_AT + 4] = bytes(4)
        return bytes(masked)
    if folder.parent.name == "SCHEDULE_TOPIC_XXXX":  # a unit there says when its message is due
        masked = bytearray(data)
        for at in range(UNIT_BYTES - 8, len(masked), UNIT_BYTES):
            if int.from_bytes(masked[at : at + 8], "big") > LONG_AGO_MS:
                masked[at : at + 8] = bytes(8)
        return bytes(masked)
    if folder.name == "config":
        return repr(_untimed(fastjson.parse(data) if data else None)).encode()
    return data


def _untimed(value: fastjson.JsonValue) -> object:
    """A table without its times; who was added first does not matter."""
    match value:
        case fastjson.JsonObject():
            return sorted((str(key), _untimed(each)) for key, each in value.members if key not in TIMED_KEYS)
        case fastjson.JsonArray():
            return [_untimed(each) for each in value.items]
        case _:
            return value


def masked_store(store: Path, index_slots: int) -> dict[str, bytes]:
    """Every file of a store that was stopped, by its name; index files, whose names are times, by their number."""
    found = {}
    for number, path in enumerate(sorted((store / "index").glob("*"))):
        found[f"index/{number}"] = mask_file(path, index_slots)
    for path in sorted(store.rglob("*")):
        if path.is_file() and path.parent.name not in ("index", "tls") and path.suffix not in (".bak", ".lock"):
            found[str(path.relative_to(store))] = mask_file(path, index_slots)
    return found
