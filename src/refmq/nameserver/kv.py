"""The key-value configuration: namespaces of keys and values, persisted as a whole after each change.

The file is upstream's kvConfig.json: ``{"configTable":{namespace:{key:value}}}``, compact. Brokers are sent the
namespace ``ORDER_TOPIC_CONFIG`` when they register: topic to ``broker:queues;broker:queues``.
"""

from __future__ import annotations

import json
from typing import Final, TypeAlias

from rpds import HashTrieMap

from refmq.errors import CorruptRecord

Namespace: TypeAlias = "HashTrieMap[str, str]"  # a string: the class cannot be subscripted when it runs
KvConfig: TypeAlias = "HashTrieMap[str, Namespace]"

ORDER_TOPIC_CONFIG: Final = "ORDER_TOPIC_CONFIG"

FILE_BYTES_MAX: Final = 1 << 20
"""Everything is written at every change and one namespace is sent with every registration, so the configuration is not
a database. Upstream has no bound."""


def put_kv(config: KvConfig, namespace: str, key: str, value: str) -> KvConfig:
    entries: Namespace = config.get(namespace) or HashTrieMap()
    return config.insert(namespace, entries.insert(key, value))


def delete_kv(config: KvConfig, namespace: str, key: str) -> KvConfig:
    """Without the key. The namespace stays even when it is empty, as upstream's does."""
    entries = config.get(namespace)
    return config if entries is None else config.insert(namespace, entries.discard(key))


def get_kv(config: KvConfig, namespace: str, key: str) -> str | None:
    entries = config.get(namespace)
    return None if entries is None else entries.get(key)


def kv_namespace(config: KvConfig, namespace: str) -> dict[str, str] | None:
    """The keys and values of a namespace in the order of the keys, or None when it does not exist."""
    entries = config.get(namespace)
    return None if entries is None else {key: entries[key] for key in sorted(entries)}


def encode_kv_file(config: KvConfig) -> bytes:
    table = {namespace: kv_namespace(config, namespace) for namespace in sorted(config)}
    return json.dumps({"configTable": table}, ensure_ascii=False, separators=(",", ":")).encode()


def decode_kv_file(data: bytes) -> KvConfig:
    """``CorruptRecord`` if it is not such a file: starting without the configuration would lose it for good."""
    try:
        document = json.loads(data)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise CorruptRecord("kvConfig.json", 0, "JSON", str(error)) from None
    table = document.get("configTable") if isinstance(document, dict) else None
    if not isinstance(table, dict):
        raise CorruptRecord("kvConfig.json", 0, "an object with a configTable", type(document).__name__)
    config: KvConfig = HashTrieMap()
    for namespace, entries in table.items():
        if not isinstance(entries, dict) or not all(isinstance(value, str) for value in entries.values()):
            raise CorruptRecord(f"configTable.{namespace}", 0, "an object of strings", type(entries).__name__)
        config = config.insert(namespace, HashTrieMap(entries))
    return config
