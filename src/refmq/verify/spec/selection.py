"""Which configurations a name means: a protocol, a folder below spec/, a configuration, or the end of its name."""

from __future__ import annotations

from collections.abc import Sequence

from refmq.errors import UsageError
from refmq.verify.spec.configuration import Configuration, Profile


def choose(found: Sequence[Configuration], names: Sequence[str], profile: str | None) -> list[Configuration]:
    """The configurations of the given names, or all without one; of this profile, `all` for every profile.

    Without a profile those that are quick are meant, and those that are named themselves.
    """
    for name in names:
        if not any(is_of(one, name) for one in found):
            raise UsageError(f"there is no protocol, folder or configuration called {name} (see `refmq spec list`)")
    wanted = profile or Profile.QUICK
    chosen = [
        one
        for one in found
        if (profile is None and any(is_called(one, name) for name in names))
        or ((not names or any(is_of(one, name) for name in names)) and (wanted == "all" or wanted in one.profiles))
    ]
    if not chosen:
        raise UsageError("no configuration matches")
    return chosen


def choose_one(found: Sequence[Configuration], name: str) -> Configuration:
    """The configuration of this name. The last part of a name is enough where no other one ends so."""
    exact = [one for one in found if one.name == name]
    called = exact or [one for one in found if is_called(one, name)]
    if len(called) > 1:
        raise UsageError(f"{name} may be {' or '.join(one.name for one in called)}")
    if not called:
        raise UsageError(f"there is no configuration called {name} (see `refmq spec list`)")
    return called[0]


def is_called(configuration: Configuration, name: str) -> bool:
    """Whether this is the configuration's name, or the end of it: `weak/split_brain`."""
    return f"/{configuration.name}".endswith(f"/{name}")


def is_of(configuration: Configuration, name: str) -> bool:
    """Whether the configuration is called so, or belongs to the protocol or the folder of this name."""
    in_folder = f"/{configuration.name}".startswith(f"/{name.rstrip('/')}/")
    return in_folder or configuration.protocol == name or is_called(configuration, name)
