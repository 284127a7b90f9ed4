"""Preemption of all three kinds (2.8).

``guaranteed`` is for queues below their guarantee (5.9), ``required_node`` for asks that can run on
one node only, ``quota`` for queues above a lowered max. They share who may have to go
(``candidates``) and how (``taking``); ``turns`` says when an ask may try.
"""
