"""The parts of ``quadriga serve``. They are imported only when the command runs."""
