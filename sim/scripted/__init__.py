"""Message flows that a script plays, and recorded journals."""

# Not compiled: it does not run for every message.
