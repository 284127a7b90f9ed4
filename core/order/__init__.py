"""Who is next: queues, applications, asks, nodes."""
