"""The data of the pages, as small and bounded JSON: one module for each subject.

Every ``look`` runs between two steps of the scheduler's owner. It reads only what it needs, and its
time does not grow with history. Whatever can be made of a copy (stories, counts of transitions, YAML)
is made by a ``finish`` in another thread. The names of states are those of the lifecycles, whatever
dialect a resource manager uses. Resources map a type to an integer, vcore in milli and memory in
bytes; times are in ns.

``quadriga.core.views`` has the same state in the shape of YuniKorn's REST API, whole lists with every
field. A page needs few fields of a bounded number of objects, sorted, and the names of the lifecycles.
"""
