"""What a node did, one fixed-size record per step.

The record layout (``refmq.trace.record``) is pure and may be imported from anywhere; modules that open
files belong to the shells.

    record   the bytes: 64 per event, in checksummed blocks
    writer   a node's recorder: rolled files, written by a thread
    memory   the same in memory, for the simulated world
    reader   reads files with the standard library alone
    columns  reads files as numpy arrays
"""
