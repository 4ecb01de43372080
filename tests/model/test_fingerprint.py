from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from refmq.model.fingerprint import message_fingerprint


def test_the_fingerprint_of_a_known_message() -> None:
    assert message_fingerprint(b"", b"123456789") == 0x4BF43926
    assert message_fingerprint(b"123456789", b"") == 0xCBF43926 << 31


@given(st.binary(), st.binary())
def test_a_fingerprint_fits_a_signed_64_bit_field_and_keeps_key_and_body_apart(key: bytes, body: bytes) -> None:
    value = message_fingerprint(key, body)
    assert 0 <= value < 2**63
    assert value == message_fingerprint(key, b"") | message_fingerprint(b"", body)
