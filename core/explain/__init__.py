"""Why an ask waits, and the smallest change that would let it run."""

# Not compiled: it does not run for every ask.
