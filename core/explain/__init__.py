"""Why an ask waits, and the smallest change that would let it run."""
