"""What a node did, one fixed-size record per step.

The record layout (``refmq.trace.record``) is pure and may be imported from anywhere; modules that open
files belong to the shells.
"""
