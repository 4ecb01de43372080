"""What the package itself promises."""

from __future__ import annotations


def test_importing_refmq_does_not_import_the_clients() -> None:
    import subprocess
    import sys

    script = "import sys, refmq; assert 'asyncio' not in sys.modules; refmq.Producer; assert 'asyncio' in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
