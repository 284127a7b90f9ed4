"""The entities and their accounting: partition, queue, application, ask, allocation, node."""
