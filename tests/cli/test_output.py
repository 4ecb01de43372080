"""Printing data: JSON that a program reads back, columns that line up."""

from __future__ import annotations

import json

import pytest

from refmq.cli.output import print_json, print_table


def test_a_json_document_reads_back_as_what_was_printed(capsys: pytest.CaptureFixture[str]) -> None:
    data = {"topic": "Bestellungen-ä", "queues": [0, 1]}
    print_json(data)
    out = capsys.readouterr().out
    assert json.loads(out) == data
    assert "ä" in out


def test_columns_line_up(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["topic", "queues"], [["A", 16], ["LongerTopic", 4]])
    assert capsys.readouterr().out == "topic        queues\nA            16\nLongerTopic  4\n"
