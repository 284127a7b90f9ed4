"""What messages do: the dispatcher, applications, asks, releases, nodes, recovery, registration."""
