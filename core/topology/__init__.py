"""Topology: the domains of nodes, and in which of them a gang fits (Q13)."""

# Not compiled: it does not run for every ask.
