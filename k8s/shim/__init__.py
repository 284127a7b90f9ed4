"""The deciding part of the shim. Inputs and the time come in, actions come out; there is no clock, thread,
random number or I/O inside."""
