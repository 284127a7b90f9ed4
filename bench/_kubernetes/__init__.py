"""The parts of ``bench.kubernetes``: schedulers in processes of their own, beside a real API server."""
