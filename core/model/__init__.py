"""The entities and their books: partition, queue, application, ask, allocation, node."""
