"""A name means a protocol, a folder, a configuration, or the end of a configuration's name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from refmq.errors import UsageError
from refmq.verify.spec.catalogue import find_configurations
from refmq.verify.spec.configuration import Configuration, Profile
from refmq.verify.spec.selection import choose, choose_one
from tests.verify.spec.helpers import TOY

TOYS = find_configurations(TOY, "MC")
DEEP = replace(TOYS[0], name="turnstile/weak/every_promise", profiles=frozenset({Profile.DEEP}))
ALL = [*TOYS, DEEP]


def names(found: list[Configuration]) -> list[str]:
    return [one.name for one in found]


@pytest.mark.parametrize("name", ["Turnstile", "turnstile", "turnstile/mc", "turnstile/mc/"])
def test_a_protocol_or_a_folder_means_the_quick_ones_in_it(name: str) -> None:
    assert choose(ALL, [name], None) == TOYS


def test_a_configuration_that_is_named_runs_whatever_its_profile_is() -> None:
    assert choose(ALL, ["turnstile/weak/every_promise"], None) == [DEEP]
    assert names(choose(ALL, ["every_promise"], None)) == ["turnstile/mc/every_promise", "turnstile/weak/every_promise"]


def test_a_profile_narrows_what_a_name_means() -> None:
    assert choose(ALL, [], "deep") == [DEEP]
    assert choose(ALL, ["Turnstile"], "all") == ALL
    assert choose(ALL, [], None) == TOYS
    with pytest.raises(UsageError, match="no configuration matches"):
        choose(ALL, ["turnstile/mc"], "deep")


def test_one_configuration_is_found_by_its_name_or_the_end_of_it() -> None:
    assert choose_one(ALL, "turnstile/mc/every_promise") == TOYS[0]
    assert choose_one(ALL, "weak/every_promise") == DEEP
    assert choose_one(ALL, "free_entry").name == "turnstile/mc/free_entry"
    with pytest.raises(
        UsageError, match=r"every_promise may be turnstile/mc/every_promise or turnstile/weak/every_promise"
    ):
        choose_one(ALL, "every_promise")


@pytest.mark.parametrize("name", ["promise", "mc", "Turn", "turnstile/m", ""])
def test_a_part_of_a_name_is_not_a_name(name: str) -> None:
    with pytest.raises(UsageError):
        choose_one(ALL, name)
