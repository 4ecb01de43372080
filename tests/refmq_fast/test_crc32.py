"""CRC-32 of the extension against zlib's: the same cases for the accelerated and the portable way."""

from __future__ import annotations

import re
import threading
import zlib
from array import array
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import refmq_fast

Crc32 = Callable[..., int]

CORE = Path(__file__).parent.parent.parent / "src/refmq_fast/core"
POLYNOMIAL = 0xEDB88320
GIL_RELEASE_BYTES = 65536

needs_extension = pytest.mark.skipif(not refmq_fast.AVAILABLE, reason=f"extension is off: {refmq_fast.REASON}")


@needs_extension
@pytest.mark.extension
@pytest.mark.parametrize("name", ["crc32", "crc32_portable"])
class TestCrc32:
    """Every case runs against both implementations, which are looked up here because neither may be there."""

    @staticmethod
    def crc32(name: str, data: object, *value: object) -> int:
        function: Crc32 = getattr(refmq_fast, name)
        return function(data, *value)

    @given(st.binary(max_size=1000), st.integers(0, 2**32 - 1))
    def test_it_is_the_value_of_zlib(self, name: str, data: bytes, value: int) -> None:
        assert self.crc32(name, data, value) == zlib.crc32(data, value)

    @pytest.mark.parametrize("length", [*range(200), 255, 256, 257, 4095, 65535, 65536, 65537, 1_000_003])
    def test_every_length_around_a_block_is_right(self, name: str, length: int) -> None:
        data = bytes((7 * i + (i >> 8)) & 0xFF for i in range(length))
        assert self.crc32(name, data) == zlib.crc32(data)

    @given(st.binary(max_size=400), st.integers(0, 400))
    def test_a_checksum_can_be_continued(self, name: str, data: bytes, cut: int) -> None:
        assert self.crc32(name, data[cut:], self.crc32(name, data[:cut])) == zlib.crc32(data)

    @pytest.mark.parametrize("wrap", [bytearray, memoryview, lambda data: array("B", data)], ids=["1", "2", "3"])
    def test_any_contiguous_buffer_will_do(self, name: str, wrap: Callable[[bytes], object]) -> None:
        assert self.crc32(name, wrap(b"refmq" * 100)) == zlib.crc32(b"refmq" * 100)

    def test_an_unaligned_buffer_will_do(self, name: str) -> None:
        data = bytes(range(256)) * 4
        for start in range(17):
            assert self.crc32(name, memoryview(data)[start:]) == zlib.crc32(data[start:])

    @pytest.mark.parametrize("value", [-1, 2**32, 2**64 + 5, -(2**70)])
    def test_a_start_value_counts_modulo_two_to_the_32_as_in_zlib(self, name: str, value: int) -> None:
        assert self.crc32(name, b"refmq", value) == zlib.crc32(b"refmq", value & 0xFFFFFFFF)

    @pytest.mark.parametrize("data", ["text", 5, None, memoryview(b"abcdef")[::2]])
    def test_what_is_not_a_contiguous_buffer_is_refused(self, name: str, data: object) -> None:
        with pytest.raises((TypeError, BufferError)):
            self.crc32(name, data)

    def test_a_wrong_number_or_type_of_arguments_is_refused(self, name: str) -> None:
        with pytest.raises(TypeError, match="one or two arguments"):
            self.crc32(name, b"", 1, 2)
        with pytest.raises(TypeError):
            self.crc32(name, b"", "1")

    def test_the_buffer_is_let_go(self, name: str) -> None:
        data = bytearray(100)
        self.crc32(name, data)
        with pytest.raises(TypeError):
            self.crc32(name, data, "1")
        data.append(1)  # raises BufferError while anybody still holds the buffer

    def test_threads_see_the_same_values_when_the_gil_is_released(self, name: str) -> None:
        buffers = [bytes([i]) * (GIL_RELEASE_BYTES + i) for i in range(4)]
        expected = [zlib.crc32(buffer) for buffer in buffers]
        found: dict[int, list[int]] = {}

        def work(worker: int) -> None:
            found[worker] = [self.crc32(name, buffer) for _ in range(20) for buffer in buffers]

        threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert [found[worker] for worker in range(4)] == [expected * 20] * 4


def test_the_tables_in_the_source_are_what_the_polynomial_gives() -> None:
    numbers = [int(text, 16) for text in re.findall(r"0x([0-9a-f]{8})u", (CORE / "crc32_table.h").read_text())]
    expected = [[register_after_byte(byte) for byte in range(256)]]
    while len(expected) < 8:
        expected.append([crc >> 8 ^ expected[0][crc & 0xFF] for crc in expected[-1]])
    assert numbers == [crc for table in expected for crc in table]


def register_after_byte(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (POLYNOMIAL if byte & 1 else 0)
    return byte


@pytest.mark.parametrize(("name", "distance"), [("FOLD_512", 512), ("FOLD_128", 128)])
def test_the_folding_constants_are_what_the_polynomial_gives(name: str, distance: int) -> None:
    found = re.search(rf"{name}\[2\] = \{{0x([0-9a-f]+)u, 0x([0-9a-f]+)u\}}", (CORE / "crc32.c").read_text())
    assert found is not None
    assert [int(text, 16) for text in found.groups()] == [
        reflected_power_of_x(distance + 32) << 1,
        reflected_power_of_x(distance - 32) << 1,
    ]


def reflected_power_of_x(exponent: int) -> int:
    """``x ** exponent`` modulo the polynomial, with the bits reflected: bit 31 is x to the 0."""
    value = 1 << 31
    for _ in range(exponent):
        value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
    return value
