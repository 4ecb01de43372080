"""A kind of histories for the tests of campaigns: some break a promise, one takes its process down, one never ends."""
