"""The small files of the broker: what a save promises, and their backup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.oracles.store_events import ConfigLost, ConfigRead, ConfigSaved, Observation, SaveConfig
from refmq.verify.oracles.base import Finding


def config_survives(observations: Iterable[Observation]) -> Iterator[Finding]:
    """A small file that was saved holds what was saved; a save that was interrupted leaves the old or the new."""
    possible, backup = {-1}, {-1}  # what the file may hold, and its backup; -1: there is none
    before = possible
    for event, seen in enumerate(observations):
        match seen:
            case SaveConfig(value):
                before = possible
                backup = backup | possible
                possible = possible | {value}
            case ConfigSaved(value):
                # The previous content became the backup; a save of what is there already changes nothing.
                backup = before - {value, -1} if value not in before and -1 not in before else backup
                possible = {value}
            case ConfigLost():
                possible = backup
            case ConfigRead(value) if value not in possible:
                yield Finding(
                    "AckedSurvives", f"a configuration file holds {value} and should hold one of {possible}", event
                )
            case _:
                pass
