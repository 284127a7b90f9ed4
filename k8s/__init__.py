"""The Kubernetes shim: the scheduler of a real cluster.

It watches the cluster, reports to the core what it sees, and carries out what the core decides. Its packages, from
the bottom up:

- ``tuning``: every bound, rate, pause and timeout that is a choice of the shim
- ``objects``: the objects of a cluster, with only the fields that are used
- ``conversion``: the meaning of the objects: settings, identities, task groups, resources, messages
- ``lifecycles``: the shim's own state machines, as tables of ``quadriga.fsm``
- ``cluster``: nodes, pods and assumptions as the predicates see them, and the predicates
- ``shim``: decides. Inputs come in with the time, actions come out. No clock, no thread, no I/O
- ``transport``: the way to the API server: connections, requests, reflectors
- ``writers``: writes to the API server: bindings, events, conditions, the lease
- ``driver``: runs all of it: one asyncio loop in a thread, the core in another one
- ``admission``: changes and checks pods when they are created

It needs the extra ``kubernetes``.
"""
