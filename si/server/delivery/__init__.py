"""Messages on their way to a resource manager: order, flow control, replay."""
