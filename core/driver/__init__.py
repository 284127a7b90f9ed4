"""Threads and clocks around the scheduler: the service that runs it in this process."""

# Not compiled: it does not run for every ask.
