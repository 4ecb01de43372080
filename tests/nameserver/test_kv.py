"""The key-value configuration and its file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rpds import HashTrieMap

from refmq.errors import CorruptRecord
from refmq.nameserver.kv import KvConfig, decode_kv_file, delete_kv, encode_kv_file, get_kv, kv_namespace, put_kv

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(st.dictionaries(TEXT, st.dictionaries(TEXT, TEXT, max_size=4), max_size=4))
def test_decoding_what_was_encoded_gives_it_back(content: dict[str, dict[str, str]]) -> None:
    config: KvConfig = HashTrieMap({namespace: HashTrieMap(entries) for namespace, entries in content.items()})
    assert decode_kv_file(encode_kv_file(config)) == config


def test_the_file_is_upstreams() -> None:
    config = put_kv(put_kv(HashTrieMap(), "ORDER_TOPIC_CONFIG", "T2", "a:1"), "ORDER_TOPIC_CONFIG", "T1", "a:2;b:2")
    assert encode_kv_file(config) == b'{"configTable":{"ORDER_TOPIC_CONFIG":{"T1":"a:2;b:2","T2":"a:1"}}}'


def test_an_emptied_namespace_still_exists() -> None:
    config = delete_kv(put_kv(HashTrieMap(), "n", "k", "v"), "n", "k")
    assert kv_namespace(config, "n") == {}
    assert kv_namespace(config, "m") is None
    assert get_kv(config, "n", "k") is None
    assert delete_kv(config, "m", "k") == config


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff", b"[]", b"{}", b'{"configTable":{"n":1}}', b'{"configTable":{"n":{"k":1}}}']
)
def test_a_damaged_file_is_reported(data: bytes) -> None:
    with pytest.raises(CorruptRecord):
        decode_kv_file(data)
