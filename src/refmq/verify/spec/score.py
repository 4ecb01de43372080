"""The score of a mutation run: how many mutants were killed, and what is wrong with the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from refmq.verify.spec.judging import Fate
from refmq.verify.spec.mutants import Reasons

SCORE_WANTED: Final = 0.95  # this share must be killed; explaining survivors is not enough


class Score:
    """The fates of all mutants, counted."""

    def __init__(self, fates: Sequence[Fate], reasons: Reasons) -> None:
        self.fates, self.reasons = fates, reasons
        self.undecided = [fate for fate in fates if fate.undecided_by]
        self.survivors = [
            fate.mutant for fate in fates if fate.mutant is not None and not fate.killed_by and not fate.undecided_by
        ]
        self.unexplained = [mutant for mutant in self.survivors if mutant.key not in reasons]
        self.killed = len(fates) - len(self.survivors) - len(self.undecided)
        self.ratio = self.killed / len(fates) if fates else 1.0
        assert 0 <= self.killed <= len(fates), "every mutant has one fate"

    def cells(self) -> tuple[int | str, ...]:
        """The row of the table in spec/README.md, after the protocol's name."""
        explained = len(self.survivors) - len(self.unexplained)
        percent = f"{100 * self.ratio:.1f} %"
        return (len(self.fates), self.killed, percent, explained, len(self.unexplained), len(self.undecided))

    def complaint(self, protocol: str, complete: bool) -> str:
        """What is wrong, in one line; empty if nothing is. `complete`: these are all mutants of the protocol."""
        survivors = {mutant.key for mutant in self.survivors}
        stale = [key for key in self.reasons if complete and key not in survivors]
        broken = [fate for fate in self.fates if fate.broken]
        if broken:
            return f"{len(broken)} mutants do not parse, the first is {broken[0].mutant}: {broken[0].finding}"
        if self.undecided:
            return f"{len(self.undecided)} mutants are undecided: give them more time, or bound the judges"
        if self.unexplained:
            return f"{len(self.unexplained)} survivors have no reason in judges/{protocol}.survivors.toml"
        if stale:
            mutants = ", ".join(map(str, stale[:3]))
            return f"judges/{protocol}.survivors.toml explains mutants that did not survive: {mutants}"
        if complete and self.ratio < SCORE_WANTED:
            return f"the score of {protocol} is below {100 * SCORE_WANTED:.0f} %"
        return ""
