"""Has CrossHair check the contracts, and says of each how far it came."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from time import perf_counter
from typing import Final

from crosshair.core_and_libs import MessageType, analyze_function, run_checkables
from crosshair.options import AnalysisKind, AnalysisOptionSet

from spec.proofs.contracts import BROKEN, SOUND

SECONDS_PER_CONDITION: Final = 2.0
"""CrossHair stops looking then. With about twenty conditions all of it stays below a minute."""


class Answer(Enum):
    """What CrossHair said, from best to worst."""

    CONFIRMED = "confirmed"
    NOTHING_FOUND = "nothing found"
    REFUTED = "refuted"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Outcome:
    """A contract, whether it is meant to hold, and what was found."""

    contract: str
    is_sound: bool
    answer: Answer
    detail: str
    seconds: float

    @property
    def is_as_expected(self) -> bool:
        if self.is_sound:
            return self.answer in {Answer.CONFIRMED, Answer.NOTHING_FOUND}
        return self.answer is Answer.REFUTED

    def as_json(self) -> str:
        values = {
            "contract": self.contract,
            "is_sound": self.is_sound,
            "found": self.answer.value,
            "detail": self.detail,
            "seconds": round(self.seconds, 3),
        }
        return json.dumps(values)

    def as_text(self) -> str:
        mark = " " if self.is_as_expected else "!"
        return f"{mark} {self.contract:36} {self.answer.value:14} {self.seconds:6.2f} s  {self.detail}".rstrip()


def check(contract: Callable[..., object], *, is_sound: bool, seconds: float = SECONDS_PER_CONDITION) -> Outcome:
    """Checks one contract; the worst answer of its conditions is that of the contract."""
    options = AnalysisOptionSet(
        analysis_kind=(AnalysisKind.PEP316,), per_condition_timeout=seconds, per_path_timeout=seconds, report_all=True
    )
    began = perf_counter()
    messages = list(run_checkables(analyze_function(contract, options)))
    answer, detail = Answer.CONFIRMED, ""
    if not messages:
        answer = Answer.NOT_CHECKED
    for message in messages:
        if message.state == MessageType.CONFIRMED:
            continue
        if message.state == MessageType.CANNOT_CONFIRM:
            if answer is Answer.CONFIRMED:
                answer = Answer.NOTHING_FOUND
        elif message.state in {MessageType.POST_FAIL, MessageType.EXEC_ERR, MessageType.POST_ERR}:
            answer, detail = Answer.REFUTED, message.message
        else:  # no arguments satisfy the precondition, a syntax error, an import that fails
            answer, detail = Answer.NOT_CHECKED, message.message
            break
    return Outcome(contract.__name__, is_sound, answer, detail, perf_counter() - began)


def outcomes() -> Iterator[Outcome]:
    """All contracts, those with a mistake last."""
    for contract in SOUND:
        yield check(contract, is_sound=True)
    for contract in BROKEN:
        yield check(contract, is_sound=False)
