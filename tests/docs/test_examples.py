"""The programs in the book run, and print what the book says.

A block with a title is a file. Tests are run by pytest, all others as programs against a cluster of their own.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from refmq.testing import TestCluster

DOCS = Path(__file__).parent.parent.parent / "docs"
BLOCK = re.compile(r'^```python title="(?P<name>[\w.]+)"\n(?P<text>.*?)^```', re.MULTILINE | re.DOTALL)
OUTPUT = re.compile(r'^```text title="output of (?P<name>[\w.]+)"\n(?P<text>.*?)^```', re.MULTILINE | re.DOTALL)
PAGES = [page for page in sorted(DOCS.rglob("*.md")) if BLOCK.search(page.read_text())]
DEFAULT_ADDRESS = "127.0.0.1:9876"


def test_the_pages_are_found() -> None:
    assert len(PAGES) >= 7


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_the_programs_of_a_page_do_what_it_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text()
    blocks = {match["name"]: match["text"] for match in BLOCK.finditer(text)}
    outputs = {match["name"]: match["text"] for match in OUTPUT.finditer(text)}
    tests = [name for name in blocks if name.startswith("test_")]
    used = {name for name in blocks if any(f"import {Path(name).stem}" in blocks[test] for test in tests)}
    assert set(outputs) <= set(blocks), "an output belongs to a program"
    python = [sys.executable, "-X", "dev"]
    with TestCluster() as cluster:
        for name, block in blocks.items():
            (tmp_path / name).write_text(block.replace(DEFAULT_ADDRESS, cluster.namesrv))
        environment = {**os.environ, "NAMESRV_ADDR": cluster.namesrv, "PYTHONPATH": str(tmp_path)}
        for name in blocks:
            if name in used:
                continue
            # Other plugins have warnings of their own; what we must not leave is an open file, socket or task.
            pytest_line = ["-W", "error::ResourceWarning", "-m", "pytest", "-q", "-p", "no:cacheprovider", name]
            what = pytest_line if name in tests else ["-W", "error", name]
            done = subprocess.run(
                [*python, *what],
                cwd=tmp_path,
                env=environment,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            if name in outputs:
                assert done.stdout == outputs[name], done.stderr
