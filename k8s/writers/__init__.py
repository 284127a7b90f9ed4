"""Writes to the API server: bindings, placeholders, events, conditions, the lease."""
