"""The page is one file that needs nothing else, and hides nothing."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from refmq.trace.record import Outcome
from refmq.verify.charts import loans_chart
from refmq.verify.local import judge_one
from refmq.verify.oracles import Promises
from refmq.verify.page import as_page
from refmq.verify.picture import Picture, picture_of_lines
from refmq.verify.recordings import Gap
from refmq.verify.verdicts import Counting, conclude
from tests.verify.oracles.stories import GOOD
from tests.verify.test_report import judged


def parsed(page: str) -> ET.Element:
    return ET.fromstring(page.replace("<!doctype html>", "").replace('<meta charset="utf-8">', ""))


def test_the_page_shows_verdicts_witnesses_and_charts() -> None:
    page = as_page(judged([Gap("b", "<b>", "torn & lost")]), picture_of_lines(GOOD))
    text = "".join(parsed(page).itertext())
    assert "What is missing" in text and "<b>: torn & lost" in text
    assert "offset 3 was passed" in text and "row 1" in text
    assert page.count("<svg") >= 3
    for title in (
        "Messages a second",
        "How long requests took",
        "Consumer groups",
        "Who had the lock of which queue",
        "All promises",
    ):
        assert title in text


def test_the_page_needs_nothing_but_itself() -> None:
    page = as_page(judged([]), picture_of_lines(GOOD))
    assert "http" not in page and "src=" not in page and "<script" not in page


def test_a_page_without_anything_to_draw_is_one_too() -> None:
    assert "All promises" in "".join(parsed(as_page(judged([]), Picture())).itertext())


def test_a_loan_lasts_until_the_next_word_about_its_queue() -> None:
    loans = picture_of_lines(GOOD).loans
    chart = loans_chart(loans)
    assert chart.count("<rect") == sum(loan.granted for loan in loans)


def test_a_finding_is_told_in_sentences_and_as_it_was_recorded() -> None:
    lines = [line for line in GOOD if not (line.action == "Pull" and line.outcome == Outcome.CONSUMED and line.c == 2)]
    found = {"AckedSurvives": judge_one("AckedSurvives", lines, Promises())}
    counting = Counting()
    for line in lines:
        counting.feed(line)
    judgement = conclude("local", counting.census(), Promises(), found, ())
    assert judgement.broken
    page = as_page(judgement, picture_of_lines(lines))
    text = "".join(parsed(page).itertext())
    assert "is told that message 2 is stored as offset 1 of t/0 at b" in text
    assert "Send ok#" in text and "as recorded" in text and "1 promise broken" in text
    assert "something was found here" in text
    assert 'href="#AckedSurvives"' in page and 'id="AckedSurvives"' in page
