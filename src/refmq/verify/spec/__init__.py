"""Running the specifications: finding TLC, checking, simulating, validating traces, mutating.

The modules follow the path of one run. `catalogue` finds the protocols and the tables of spec/; `configuration` and
`cfg` make of each entry the file that TLC reads. `tlc` starts the model checker and reads its output, `values` turns
printed TLA+ values into Python ones, `counterexample` turns those into readable steps, and `check` compares the outcome
with what the configuration expects. `traces` and `mutants` make the modules that nobody writes by hand.
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
