"""What the objects of a cluster mean for the scheduler: settings, identities, task groups, resources, and
the messages to the core."""
