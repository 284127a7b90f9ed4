"""Who is next: queues, applications, asks and nodes, by indexes and heaps over the model."""
