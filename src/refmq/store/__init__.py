"""Bytes on disk and the values they stand for, and the steps that append, dispatch, flush and recover.

Pure: steps return effects (write, flush, truncate); a shell in ``refmq.net`` or ``refmq.sim`` runs them.
"""
