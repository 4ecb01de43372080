"""Proofs about the arithmetic of the store and of the client, for all sizes.

TLC looks at every state of a small world; arithmetic goes wrong at sizes that no small world has. Here a claim is a
formula over integers or bit-vectors without bounds, and Z3 shows that its negation has no model. Every claim has at
least one broken twin, the same claim with one rule changed, and Z3 must find a model against it: a claim that cannot
fail proves nothing. The contracts in `contracts.py` are checked by CrossHair on the code itself.

    python -m spec.proofs            all claims, a table, exit code 3 when one is not as it should be
    python -m spec.proofs contracts  the contracts
"""
