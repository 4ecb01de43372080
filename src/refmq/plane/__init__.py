"""The hot path of a broker as steps: what happens to a message between its request and its answer."""
