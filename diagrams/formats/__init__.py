"""The formats of state diagrams, one module each."""
