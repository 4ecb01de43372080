"""What the package itself promises: cheap to import, and every name that it lists."""

from __future__ import annotations

import subprocess
import sys

import pytest

import refmq


def test_importing_refmq_does_not_import_the_clients() -> None:
    script = "import sys, refmq; assert 'asyncio' not in sys.modules; refmq.Producer; assert 'asyncio' in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_every_name_of_the_package_is_what_its_module_defines() -> None:
    assert set(refmq._PLACES) | {"__version__"} == set(refmq.__all__)
    for name, place in refmq._PLACES.items():
        found = refmq.__getattr__(name)
        assert found is (sys.modules[place] if name == "sync" else getattr(sys.modules[place], name))
        assert vars(refmq)[name] is found, "the second look is an ordinary one"


def test_names_are_listed_before_they_are_used_and_others_do_not_exist() -> None:
    assert set(refmq.__all__) <= set(dir(refmq))
    with pytest.raises(AttributeError, match="module 'refmq' has no attribute 'Prodcer'"):
        refmq.__getattr__("Prodcer")
