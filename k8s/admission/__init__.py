"""Admission: what happens to pods and workloads when they are created, as a webhook or as a policy."""
