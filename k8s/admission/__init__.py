"""Admission: changes and checks of pods and workloads when they are created, as a webhook or as a policy."""
