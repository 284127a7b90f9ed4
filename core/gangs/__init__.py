"""Gangs that are placed as a whole: admission, plans, placing, preemption, replacement of placeholders."""
