"""What must always hold, and whether it does: invariants, audit, health."""
