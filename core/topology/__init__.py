"""Topology: the domains of nodes, and in which of them a gang fits (Q13)."""
