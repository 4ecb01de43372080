"""The simulated world: a disk that tears and forgets, a network that loses, a clock we own."""
