"""The clients on an event loop: sockets, timers and tasks around the pure steps of `refmq.client`."""
