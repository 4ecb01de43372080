"""Upstream's own integration tests pass with our servers (or with `--broker real`, with theirs)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from interop.scene import Cluster
from interop.upstream import CLASSES, LEFT_OUT, published_classes, run_class

AS_UPSTREAM = {
    "messageDelayLevel": "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h",
    "transactionTimeOut": "6000",
    "transactionCheckInterval": "60000",
}
"""What the tests rely on and other cases of ours set to less."""


@pytest.fixture(scope="module")
def servers(folder: Path, pytestconfig: pytest.Config) -> Iterator[Cluster]:
    real = pytestconfig.getoption("--broker") == "real"
    with Cluster(folder / "upstream", settings=AS_UPSTREAM, real=real) as started:
        yield started


def test_every_class_of_upstream_is_run_or_left_out_for_a_reason() -> None:
    assert published_classes() == {*CLASSES, *LEFT_OUT}
    assert all(LEFT_OUT.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", CLASSES)
def test_upstream(name: str, servers: Cluster, folder: Path) -> None:
    cases = run_class(name, servers, folder / "upstream" / "clients")
    print(f"{name}: {len(cases)} cases, " + ", ".join(f"{case.name} {case.result}" for case in cases))
    assert any(case.result == "passed" for case in cases), "no case was run"
    failed = [f"{case.name}: {case.why}" for case in cases if case.result == "failed"]
    assert not failed, "\n".join(failed)
