"""The decision: which ask gets which node, and what follows from it."""
