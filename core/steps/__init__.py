"""What a decision is made of: the next ask, limits, reservations, refusals, allocations, the queue tree."""
