"""The shim's own lifecycles, as tables of ``quadriga.fsm``. They import nothing else of ours."""
