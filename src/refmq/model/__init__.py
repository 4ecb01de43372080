"""Values that everything else speaks in: identifiers, steps and events, the disk, the vocabulary.

Nothing here performs IO, reads a clock or knows a byte layout.
"""
