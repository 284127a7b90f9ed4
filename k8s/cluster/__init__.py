"""The cluster as the predicates see it, and the predicates."""
