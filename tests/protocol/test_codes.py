"""The codes are those of the published jars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from refmq.protocol.codes import RequestCode, ResponseCode

ROOT = Path(__file__).parent.parent.parent


GOLDEN = ROOT / "tests" / "golden" / "codes"


def upstream(kind: str, version: str) -> dict[str, int]:
    """The constants of one version of RocketMQ."""
    lines = (GOLDEN / f"{kind}-{version}.txt").read_text().splitlines()
    return {name: int(number) for number, name in (line.split() for line in lines)}


@pytest.mark.parametrize(("kind", "codes"), [("request", RequestCode), ("response", ResponseCode)])
def test_the_codes_are_those_of_both_versions(kind: str, codes: Any) -> None:
    ours = {name: int(code) for name, code in codes.__members__.items()}
    assert ours == upstream(kind, "4.9.8") | upstream(kind, "5.3.3")
