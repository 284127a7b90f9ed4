"""The driver of the shim: one asyncio loop that owns all of its state, and the core in a thread of its own."""
