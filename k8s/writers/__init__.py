"""What is written to the API server: bindings, placeholders, events, conditions, the lease."""
