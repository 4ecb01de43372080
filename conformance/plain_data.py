"""Histories as plain data: a setting and steps, both dataclasses, to JSON and back.

Fields that have their default are left out, so a shrunken history reads as short as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from refmq.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SettingT = TypeVar("SettingT", bound="DataclassInstance")
StepT = TypeVar("StepT", bound="DataclassInstance")


def to_json(setting: DataclassInstance, steps: Sequence[DataclassInstance]) -> dict[str, Any]:
    """What `from_json` reads."""
    return {"setting": _changed(setting), "steps": [{"step": type(s).__name__, **_changed(s)} for s in steps]}


def from_json(
    data: dict[str, Any], kind: str, setting: type[SettingT], steps: Mapping[str, type[StepT]]
) -> tuple[SettingT, tuple[StepT, ...]]:
    """A setting and its steps; `UsageError` when the data are no history of this `kind`."""
    try:
        return setting(**data["setting"]), tuple(_step(dict(item), steps) for item in data["steps"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"this is not a history of a {kind}: {error}") from None


def _changed(value: DataclassInstance) -> dict[str, Any]:
    return {
        field.name: getattr(value, field.name)
        for field in dataclasses.fields(value)
        if getattr(value, field.name) != field.default
    }


def _step(item: dict[str, Any], steps: Mapping[str, type[StepT]]) -> StepT:
    kind = steps[item.pop("step")]
    return kind(**{name: _tuples(value) for name, value in item.items()})


def _tuples(value: Any) -> Any:
    """JSON has lists only; the steps have tuples, so that they can be compared and hashed."""
    return tuple(_tuples(item) for item in value) if isinstance(value, list) else value
