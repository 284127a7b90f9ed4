"""``FastMachine`` and its family: drop-ins for the machines of the library ``transitions``."""

# Not compiled: its classes derive from a library's, or others derive from them.
