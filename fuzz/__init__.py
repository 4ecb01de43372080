"""Fuzzing: damaged input for everything that reads bytes of somebody else.

targets   what is fed, which bytes it controls, which errors it may answer with, and what it compares
seeds     the inputs to begin with: frames and stores of the real RocketMQ, and small ones of our own
mutate    how an input is damaged
campaign  the loop: damage, feed, watch time and memory, shrink and save what breaks
"""
