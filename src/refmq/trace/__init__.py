"""What a node did, one fixed-size record per step.

The record layout (``refmq.trace.record``) is pure and may be imported from anywhere; modules that open
files belong to the shells.

    record   the bytes: 64 per event, in checksummed blocks
    page     events packed in memory: in Python, or in C where that was built
    writer   a node's recorder: pages, and the thread that writes them
    files    rolled files: strings at the start, whole blocks, what to do when writing fails
    memory   the same in memory, for the simulated world
    reader   reads files with the standard library alone
    columns  reads files as numpy arrays
"""
