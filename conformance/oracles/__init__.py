"""Oracles over what can be read of one store: the promises of spec/store_recovery.

They stand beside the histories of a store and not with the others in `refmq.verify.oracles`, because they judge other
things: whole readouts of a store that was opened again, the files of a disk that no process has open, records decoded
by a codec of its own. Nothing but the runner of these histories can observe that, and no trace holds it. What is
judged of a running broker, from its events and from what clients see, is in `refmq.verify.oracles` only; a promise that
is on both sides (AckedSurvives) is judged from its own observations on each.

A finding is the same on both: `refmq.verify.oracles.base.Finding`.
"""
