"""What the pages show, as small and bounded JSON: one module for each subject.

Every ``look`` runs between two steps of the scheduler's owner: it takes what it needs and nothing
that costs time in proportion to history. What can be made of a copy afterwards (stories, counts of
transitions, YAML) is made by a ``finish``, elsewhere. Names of states are the lifecycles' own,
whatever dialect a resource manager speaks. Resources map a type to an integer, vcore in milli and
memory in bytes; times are ns.
"""
