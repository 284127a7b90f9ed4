"""The meaning of a cluster's objects for the scheduler: settings, identities, task groups, resources, and the
messages to the core."""
