"""The deciding part of the shim: inputs come in with the time, actions come out. There is no clock,
thread, random number or I/O inside."""
