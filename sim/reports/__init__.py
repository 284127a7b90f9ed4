"""What a simulation measured, and how it is shown."""
