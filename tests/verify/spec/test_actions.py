"""The actions of a specification are the names that `Next` leads to."""

from __future__ import annotations

import pytest

from refmq.verify.spec.actions import actions_of_next
from tests.verify.spec.helpers import TURNSTILE

TOY = TURNSTILE.read_text()


def module(body: str) -> str:
    return f"---- MODULE X ----\nEXTENDS Naturals\nVARIABLES x, y\n{body}\n====\n"


def test_actions_are_found_through_groups_and_quantifiers() -> None:
    assert actions_of_next(TOY) == ["InsertCoin", "WalkIn"]
    text = module("Helper == x' = 1\nA == y > 0 /\\ Helper\nB == UNCHANGED x\nG == A \\/ B\nNext == \\E i \\in {1} : G")
    assert actions_of_next(text) == ["A", "B"]
    with pytest.raises(ValueError, match="no definition of Next"):
        actions_of_next(module("A == 1"))
