"""Every request code has one row, and the page of request codes follows from them."""

from __future__ import annotations

import dataclasses
import runpy
from pathlib import Path
from typing import Any

import pytest

from refmq.protocol import registry
from refmq.protocol.codes import RequestCode
from refmq.protocol.registry import ROWS, Role, Row, Status, status

ROOT = Path(__file__).parent.parent.parent


GOLDEN = ROOT / "tests" / "golden" / "codes"


def upstream(kind: str, version: str) -> dict[str, int]:
    """The constants of one version of RocketMQ."""
    lines = (GOLDEN / f"{kind}-{version}.txt").read_text().splitlines()
    return {name: int(number) for number, name in (line.split() for line in lines)}


def test_every_request_code_has_one_row_that_knows_its_versions() -> None:
    assert sorted(row.code for row in ROWS) == sorted(RequestCode)
    old, new = upstream("request", "4.9.8"), upstream("request", "5.3.3")
    for row in ROWS:
        known = [version for version, names in (("4.9.8", old), ("5.3.3", new)) if row.code.name in names]
        assert row.versions == ", ".join(known), row.code.name


def test_headers_and_bodies_of_the_rows_exist() -> None:
    for row in ROWS:
        for part in (row.header, row.response_header):
            assert part is None or dataclasses.is_dataclass(part), row.code.name
        assert row.served_by or row.declined, f"nobody serves {row.code.name}, so it must be declined"


PUT_KV = next(row for row in ROWS if row.code == RequestCode.PUT_KV_CONFIG)


RUNNING_INFO = next(row for row in ROWS if row.code == RequestCode.GET_CONSUMER_RUNNING_INFO)


POP = next(row for row in ROWS if row.code == RequestCode.POP_MESSAGE)


def test_what_a_role_dispatches_is_implemented_and_nothing_else() -> None:
    assert status(PUT_KV, {Role.NAMESERVER: {100}}) is Status.IMPLEMENTED
    assert status(PUT_KV, {Role.NAMESERVER: {101}}) is Status.NOT_YET
    assert status(PUT_KV, {}) is Status.NOT_YET
    assert status(PUT_KV, {Role.BROKER: {100}}) is Status.NOT_YET
    assert status(POP, {Role.BROKER: {100}}) is Status.NOT_SUPPORTED


def test_a_code_that_two_roles_serve_needs_both() -> None:
    assert status(RUNNING_INFO, {Role.BROKER: {307}, Role.CLIENT: set()}) is Status.NOT_YET
    assert status(RUNNING_INFO, {Role.BROKER: {307}, Role.CLIENT: {307}}) is Status.IMPLEMENTED


def test_a_declined_code_that_is_dispatched_is_a_contradiction() -> None:
    with pytest.raises(AssertionError, match="POP_MESSAGE is declined, but the broker serves it"):
        status(POP, {Role.BROKER: {200050}})


def generator() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "_request_codes.py"))


def test_the_page_of_request_codes_is_what_the_registry_says() -> None:
    module = generator()
    expected = module["page"](module["served"]())
    assert module["PAGE"].read_text() == expected, "run `python docs/_request_codes.py --write` and commit the page"


def test_the_page_changes_with_what_a_role_dispatches() -> None:
    """The comparison above would not be worth much if it could not fail."""
    module = generator()
    page = module["page"]
    assert page({Role.NAMESERVER: {100}}) != page({Role.NAMESERVER: set()})
    assert "| 100 | `PUT_KV_CONFIG` | 4.9.8, 5.3.3 | nameserver |" in page({})
    assert page({}).count("\n| 2000") + page({}).count("\n| 20015") >= 7


def test_a_role_serves_only_codes_that_are_known_to_be_its_own() -> None:
    known = {role: {row.code for row in ROWS if role in row.served_by} for role in Role}
    for role, codes in generator()["served"]().items():
        assert set(codes) <= known[role], f"the {role.value} serves codes that the registry does not give it"


def test_a_row_says_the_version_of_its_code() -> None:
    assert Row(code=RequestCode.DELETE_ACL_CONFIG, served_by=()).versions == "4.9.8"
    assert registry.ONLY_4_9_8.isdisjoint(registry.ONLY_5_3_3)
