"""Answers that are errors: each has the class that an application catches, and says who answered what."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from refmq import errors
from refmq.client.answers import CLASSES, broker_error, request_name, response_name
from refmq.errors import BrokerError
from refmq.protocol.codes import RequestCode, ResponseCode
from refmq.protocol.command import request, response


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (17, errors.TopicNotExist),
        (16, errors.NoPermission),
        (2, errors.SystemBusy),
        (215, errors.SystemBusy),
        (13, errors.MessageIllegal),
        (25, errors.SubscriptionNotLatest),
        (1, BrokerError),
        (-7, BrokerError),
    ],
)
def test_a_code_has_its_class(code: int, kind: type[BrokerError]) -> None:
    error = broker_error("h:1", 310, response(request(310), code, remark="why"))
    assert type(error) is kind
    assert "h:1" in str(error) and "SEND_MESSAGE_V2" in str(error) and "why" in str(error)
    assert str(code) in str(error)


def test_no_class_is_for_a_success() -> None:
    assert ResponseCode.SUCCESS not in CLASSES
    assert all(issubclass(kind, BrokerError) for kind in CLASSES.values())


@given(st.integers(-(2**31), 2**31 - 1))
def test_every_number_has_a_name_that_leads_back_to_it(code: int) -> None:
    """Newer peers send numbers that nobody here has heard of."""
    for name, names in ((request_name(code), RequestCode), (response_name(code), ResponseCode)):
        assert name == f"{names.__name__.removesuffix('Code').lower()} {code}" or names[name] == code
    assert str(code) in str(broker_error("h:1", code, response(request(code), code)))
