"""A mistake that is put into a module on purpose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from conformance.mutants.apply import replacing, replacing_in_function


@dataclass(frozen=True, slots=True)
class Seeded:
    """One mistake: a place in a module, and what stands there instead.

    With `function` the place is looked for in that function only, and in its syntax tree as `ast.unparse` prints it:
    comments, line breaks, quotes and everything outside of the function may change, and the mistake still fits. Without
    it `old` is a piece of the source as it stands.
    """

    name: str
    bug: str
    """The number in the catalogue of historical bugs (B..), or of the traps and crash points of the format (T.., C..);
    empty for a mistake that is just easy to make."""
    text: str
    """What the mistake is."""
    module: str
    old: str
    new: str
    function: str = ""
    """Its qualified name, as in `CommitLog.append`."""

    def change(self) -> Callable[[str], str]:
        """From the source of the module to the source with the mistake. Raises `LookupError` where it does not fit."""
        return change_of(self.to_json())

    def to_json(self) -> dict[str, str]:
        return {"module": self.module, "old": self.old, "new": self.new, "function": self.function}


def change_of(mutant: dict[str, str]) -> Callable[[str], str]:
    """The change that the JSON form of a mistake stands for."""
    if mutant.get("function"):
        return replacing_in_function(mutant["function"], mutant["old"], mutant["new"])
    return replacing(mutant["old"], mutant["new"])
