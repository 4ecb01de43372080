"""What the tests of the runner share: where the specifications are, and a configuration made by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from refmq.tools.jdk import find_java
from refmq.tools.tlc import find_tlc_jar
from refmq.verify.spec.catalogue import Configuration, Expectation, find_configurations
from refmq.verify.spec.cfg import Cfg

SPEC = Path(__file__).resolve().parents[3] / "spec"
TOY = Path(__file__).resolve().parent / "toy"
TURNSTILE = TOY / "turnstile" / "Turnstile.tla"

needs_tlc = pytest.mark.skipif(find_java() is None or find_tlc_jar() is None, reason="needs Java and TLC")


def configuration(name: str, spec_dir: Path = SPEC) -> Configuration:
    """The configuration of this full name."""
    (found,) = [one for one in find_configurations(spec_dir) if one.name == name]
    return found


def expecting(expect: Expectation, **others: object) -> Configuration:
    """A configuration of the toy with an invariant Safe and a property Lives, which expects this."""
    cfg = Cfg("Spec", invariants=("Safe",), properties=("Lives",))
    fields: dict[str, object] = {"expect": expect, "cfg": cfg, "covers": False, **others}
    return replace(configuration("turnstile/mc/every_promise", TOY), **fields)  # type: ignore[arg-type]  # types differ
