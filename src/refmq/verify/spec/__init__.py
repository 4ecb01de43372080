"""Running the specifications: finding TLC, checking, simulating, validating traces, mutating.

The modules follow the path of one run: `catalogue` reads what is in spec/, `tlc` starts the model checker and reads
what it says, `values` turns printed TLA+ values into Python ones, `counterexample` makes a readable sequence of steps
of them, `check` compares the outcome with what a configuration expects. `traces` and `mutants` build the modules that
are not written by hand.
"""

from __future__ import annotations

from refmq.verify.spec.catalogue import Configuration, Expectation, Profile, find_configurations, find_spec_dir
from refmq.verify.spec.check import Verdict, judge
from refmq.verify.spec.tlc import Found, Outcome, Tlc, find_tlc

__all__ = [
    "Configuration",
    "Expectation",
    "Found",
    "Outcome",
    "Profile",
    "Tlc",
    "Verdict",
    "find_configurations",
    "find_spec_dir",
    "find_tlc",
    "judge",
]
