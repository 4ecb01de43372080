"""refmq: RocketMQ as an executable specification.

The meaning lives here, in pure typed Python that reads beside the TLA+ specifications in ``spec/``.
``refmq_fast`` replaces parts of it with C and may only be faster.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
