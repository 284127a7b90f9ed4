"""The parts of ``quadriga serve``. Nothing here is imported before the command runs."""
