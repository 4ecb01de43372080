"""The page is one file that needs nothing else, and hides nothing."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from refmq.verify.page import as_page, loans_chart, span
from refmq.verify.picture import Picture, picture_of_lines
from refmq.verify.recordings import Gap
from tests.verify.oracles.stories import GOOD
from tests.verify.test_report import judged


def parsed(page: str) -> ET.Element:
    return ET.fromstring(page.replace("<!doctype html>", "").replace('<meta charset="utf-8">', ""))


def test_the_page_shows_verdicts_witnesses_and_charts() -> None:
    page = as_page(judged([Gap("b", "<b>", "torn & lost")]), picture_of_lines(GOOD))
    text = "".join(parsed(page).itertext())
    assert "What is missing" in text and "<b>: torn & lost" in text
    assert "offset 3 was passed" in text and "row 1" in text
    assert page.count("<svg") >= 4
    for title in ("Events over time", "How long requests took", "Groups", "Who was lent which queue", "All promises"):
        assert title in text


def test_the_page_needs_nothing_but_itself() -> None:
    page = as_page(judged([]), picture_of_lines(GOOD))
    assert "http" not in page and "src=" not in page and "<script" not in page


def test_a_page_without_anything_to_draw_is_one_too() -> None:
    assert "All promises" in "".join(parsed(as_page(judged([]), Picture())).itertext())


def test_times_are_told_in_their_unit() -> None:
    assert [span(exponent) for exponent in (3, 10, 20, 30, 34)] == ["8 ns", "1.02 us", "1.05 ms", "1.07 s", "17.2 s"]


def test_a_loan_lasts_until_the_next_word_about_its_queue() -> None:
    loans = picture_of_lines(GOOD).loans
    chart = loans_chart(loans)
    assert chart.count("<rect") == sum(loan.granted for loan in loans)
