"""Who a client is: names that differ, and a process that knows when it is another one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from refmq.aio.identity import new_instance_name, process_id

FORKS = """
import os
from refmq.aio.identity import new_instance_name, process_id
before = process_id()
child = os.fork()
right = process_id() == os.getpid() and new_instance_name().startswith(f"{os.getpid()}#")
if child == 0:
    os._exit(0 if right and process_id() != before else 1)
_, status = os.waitpid(child, 0)
print(right and process_id() == before and os.waitstatus_to_exitcode(status) == 0)
"""


def test_the_process_is_this_one() -> None:
    assert process_id() == os.getpid()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_knows_that_it_is_another_process() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "True\n"


def test_no_two_clients_have_one_name() -> None:
    assert len({new_instance_name(1) for _ in range(100)}) == 100
