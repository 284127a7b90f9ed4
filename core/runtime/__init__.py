"""Run to completion: the kernel, timers, the journal, the outbox."""
