"""Preemption: which allocations are evicted, and for which ask (2.8).

Three reasons have a module each: ``guaranteed`` (the ask's queue is below its guarantee, 5.9),
``required_node`` (the ask can run on one node only) and ``quota`` (a queue is above its max). They
share ``candidates``: which allocations may be evicted, and in which order. Each returns an
``Eviction``, which ``scheduling.releasing`` carries out.
"""
