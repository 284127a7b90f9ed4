"""Threads and clocks around the scheduler."""
