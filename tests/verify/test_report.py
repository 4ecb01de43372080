"""The report of a judgement as text and as JSON."""

from __future__ import annotations

import json

from refmq.trace.record import Outcome
from refmq.verify.oracles import ORACLES, Promises
from refmq.verify.recordings import Gap
from refmq.verify.report import as_data, in_short, text_lines
from refmq.verify.verdicts import Census, Found, Judgement, Shown, conclude

SHOWN = Shown("AckedSurvives", "offset 3 was passed", "client-1", "b", 1_700_000_000_000_000_000, 9, ("row 1", "row 2"))


def judged(gaps: list[Gap]) -> Judgement:
    census = Census({("b", "AppendMessage", Outcome.STEP): 5, ("c", "Send", Outcome.INVOKE): 4}, 1_000, 2_000_000_000)
    found = {"AckedSurvives": Found(7, (SHOWN,) * 5)}
    return conclude("test", census, Promises(flush_sync=False), found, gaps, seconds=1.5)


def test_the_text_tells_what_is_broken_and_shows_it() -> None:
    text = "\n".join(text_lines(judged([])))
    assert "9 events of 2 nodes in 2.000 s: b, c" in text
    assert "BROKEN  AckedSurvives, 7 times: What was acknowledged survives" in text
    assert "offset 3 was passed (client-1, 2023-11-14T22:13:20.000000Z)" in text
    assert "      row 2" in text and "... and 4 more" in text
    assert f"{len(ORACLES) - 3} kept, 1 broken, 2 not judged" in text
    assert "not judged, it is about brokers that flush before they answer: DurableAck, NeverServeUnflushed" in text


def test_the_text_names_what_is_missing() -> None:
    text = "\n".join(text_lines(judged([Gap("b", f"file {n}", "it is torn") for n in range(8)])))
    assert "missing: file 0: it is torn" in text
    assert "missing: and 3 more stretches" in text
    assert "UNKNOWN  AckedSurvives" in text


def test_the_json_has_a_verdict_for_each_promise() -> None:
    data = json.loads(json.dumps(as_data(judged([]))))
    assert data["format"] == 1 and data["events"] == 9
    (verdict,) = [each for each in data["verdicts"] if each["status"] == "broken"]
    assert verdict["promise"] == "AckedSurvives" and verdict["found"] == 7
    assert verdict["findings"][0]["witness"] == ["row 1", "row 2"]
    assert data["assumed"] == {"flush_sync": False, "settled": True}


def test_many_names_are_counted() -> None:
    assert in_short([str(n) for n in range(20)]).endswith("and 8 more")
