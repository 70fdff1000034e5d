"""A device whose calls are done by a thread of its own: in a forked child every call of it waits for ever."""

import threading
from queue import SimpleQueue

from heald.api import hookimpl

HEALD_API = (1, 0)
METHODS = ("allocate", "free", "copy_in", "copy_out", "record", "synchronize", "close")


@hookimpl
def heald_devices(registry):
    registry.device(type="SERVED", scan=scan, kernels="heald_example_device.kernels:register_kernels")


def scan(config):
    from heald_example_device.device import Example

    def asks(method):
        def call(self, *arguments):
            answer = SimpleQueue()
            self.requests.put((method, (self, *arguments), answer))
            return answer.get()

        return call

    def open_with_thread(self):
        Example.open(self)
        self.requests = SimpleQueue()
        threading.Thread(target=serve, args=(self.requests,), daemon=True).start()

    methods = {name: asks(getattr(Example, name)) for name in METHODS}
    served_type = type("Served", (Example,), {"type": "SERVED", "open": open_with_thread, **methods})
    return [served_type(0, 1 << 20)]


def serve(requests):
    while True:
        method, arguments, answer = requests.get()
        answer.put(method(*arguments))
