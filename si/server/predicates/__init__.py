"""Predicates that the resource manager answers: questions, and how they are asked."""
