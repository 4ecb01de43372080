"""Tokens of SQL92 subscriptions."""

from __future__ import annotations

import pytest

from refmq.filter.sql_lexer import Lexer, SqlSyntaxError


def tokens(text: str) -> list[tuple[str, str]]:
    lexer = Lexer(text, 100)
    found = []
    while (token := lexer.next()).kind != "end":
        found.append((token.kind, token.text))
    return found


def test_keywords_are_of_any_case_and_names_keep_theirs() -> None:
    assert tokens("nOt Not_a $x") == [("keyword", "NOT"), ("identifier", "Not_a"), ("identifier", "$x")]


def test_numbers_strings_and_symbols() -> None:
    assert tokens("10L 1.5e3 .5 'it''s' <> <=") == [
        ("integer", "10L"),
        ("float", "1.5e3"),
        ("float", ".5"),
        ("string", "it's"),
        ("symbol", "<>"),
        ("symbol", "<="),
    ]


def test_a_leading_zero_is_a_number_of_its_own() -> None:
    assert tokens("07") == [("integer", "0"), ("integer", "7")]


def test_blanks_and_comments_are_skipped() -> None:
    assert tokens("a /* = */ -- b\n\t1") == [("identifier", "a"), ("integer", "1")]


def test_an_illegal_character_matters_only_when_it_is_reached() -> None:
    lexer = Lexer("a  ! b", 100)
    assert lexer.peek() == lexer.next()
    with pytest.raises(SqlSyntaxError) as caught:
        lexer.next()
    assert caught.value.position == 3
    with pytest.raises(SqlSyntaxError, match="unterminated string"):
        Lexer("'x", 100).peek()
