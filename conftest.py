"""Settings shared by every test folder: the Hypothesis profiles.

| profile | used by                | examples | random?                                    |
|---------|------------------------|----------|--------------------------------------------|
| quick   | a plain ``pytest``     | 50       | yes; failures are remembered in .hypothesis |
| ci      | ``nox``                | 100      | no: the same commit gives the same examples |
| long    | campaigns, by hand     | 5000     | yes                                        |

``ci`` is derandomized so that a red run means that the commit is wrong, for everybody and every time; looking for
new inputs is the work of ``quick`` on every desk and of ``long``. Choose with ``pytest --hypothesis-profile=long``.
Every profile prints the ``@reproduce_failure`` line that brings a failure back.
"""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("quick", max_examples=50, stateful_step_count=30, deadline=None, print_blob=True)
settings.register_profile(
    "ci",
    max_examples=100,
    stateful_step_count=30,
    deadline=None,  # machines that run CI stall; speed is measured in bench/, never asserted in a test
    derandomize=True,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long",
    max_examples=5000,
    stateful_step_count=100,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("quick")
