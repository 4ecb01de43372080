"""The hot path of a broker as steps without input or output: what happens between a request and its answer."""
