from __future__ import annotations

import contextlib
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq.acl.document import DEPTH_MAX, FILE_BYTES_MAX, number_of, read_document, write_document
from refmq.errors import MissingTool, UsageError


def test_every_scalar_is_the_text_that_it_is_written_as() -> None:
    text = b"a: 12345678\nb: 0123456\nc: true\nd: 1e10\ne: 'x'\nf: 2024-01-01\n"
    assert read_document(text, "f") == {
        "a": "12345678", "b": "0123456", "c": "true", "d": "1e10", "e": "x", "f": "2024-01-01",
    }  # fmt: skip


@pytest.mark.parametrize("text", [b"", b"\n", b"# only a comment\n", b"---\n"])
def test_an_empty_file_is_an_empty_mapping(text: bytes) -> None:
    assert read_document(text, "f") == {}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"a: &x 1\nb: *x\n", "aliases and anchors"),
        (b"a: &x [1,1]\nb: &y [*x,*x]\nc: [*y,*y]\n", "aliases and anchors"),
        (b"a: !!python/object/apply:os.system ['true']\n", "tags are not allowed"),
        (b"a: !!str 1\n", "tags are not allowed"),
        (b"a: 1\na: 2\n", "twice"),
        (b"[1]: 2\n", "no text"),
        (b"- 1\n", "a mapping"),
        (b"text", "a mapping"),
        (b"a: [\n", "is not YAML in line"),
        (b"a: 1\n---\nb: 2\n", "is not YAML"),
        (b"\xff\xfe\xff", "UTF-8"),
        (b"a: " + b"[" * 5_000, "nested too deep"),
        (b"a: " + b"{a: " * 100_000, "nested too deep"),
        (b"a" * (FILE_BYTES_MAX + 1), "at most"),
    ],
)
def test_what_no_acl_file_needs_is_refused_with_the_name_of_the_file(text: bytes, why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        read_document(text, "the-file.yml")
    assert "the-file.yml" in str(refused.value)


def test_the_depth_is_bounded_where_it_says() -> None:
    read_document(b"a: " + b"[" * (DEPTH_MAX - 1) + b"]" * (DEPTH_MAX - 1), "f")
    with pytest.raises(UsageError, match="nested too deep"):
        read_document(b"a: " + b"[" * DEPTH_MAX + b"]" * DEPTH_MAX, "f")


TEXTS = st.text(st.characters(blacklist_categories=["Cs", "Cc"]), max_size=12)


@given(st.dictionaries(TEXTS.filter(bool), TEXTS | st.lists(TEXTS), max_size=5))
def test_what_is_written_is_read_back(document: dict[str, object]) -> None:
    assert read_document(write_document(document), "f") == document


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(UsageError):
        assert isinstance(read_document(data, "f"), dict)


def test_numbers_are_read_from_texts() -> None:
    assert (number_of("17"), number_of(3), number_of("x"), number_of(None), number_of("9" * 40)) == (17, 3, 0, 0, 0)


def test_without_pyyaml_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingTool, match=r"refmq\[acl\]"):
        read_document(b"a: 1", "f")
