"""Threads and clocks around the scheduler: the service that runs it in this process."""
