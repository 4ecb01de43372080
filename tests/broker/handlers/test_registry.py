"""The dispatch table of a broker."""

from __future__ import annotations

import pytest

from refmq.broker.handlers import SERVED
from refmq.broker.handlers._registry import HANDLERS, handles
from refmq.protocol.codes import RequestCode, ResponseCode
from tests.broker.harness import Harness


def test_a_code_has_one_handler() -> None:
    code, present = next(iter(HANDLERS.items()))
    with pytest.raises(AssertionError, match="two handlers"):
        handles(RequestCode(code))(present)
    assert HANDLERS[code] is present


def test_every_handler_is_served_and_an_unserved_code_is_answered() -> None:
    assert set(HANDLERS) <= set(SERVED)
    unserved = next(code for code in RequestCode if code not in SERVED)
    answer = Harness().ask(unserved)
    assert answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
    assert answer.remark == f" request type {int(unserved)} not supported"
