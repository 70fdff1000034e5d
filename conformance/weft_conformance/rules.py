"""The rules that cases refer to, as messages quote them: where the contract is, and what it says there."""

PROTOCOL = "weft.contract.device.Device"

RULES = {
    "Device": f"{PROTOCOL} has type, uid, attributes and open, close, allocate, free, copy_in, copy_out, record, "
              "synchronize; copy_peer, wait_event and wrap are optional",
    "Device.uid": "`uid` tells a device of its type from all others and is stable across processes: serial number, "
                  "bus address, ...",
    "Device.attributes": "`memory` (bytes, an int), `model`, `driver` (text), `host_visible` (True when its buffers "
                         "are host memory)",
    "Device.host_visible": "allocate of a host_visible device returns a one-dimensional, 64-byte aligned uint8 array",
    "scan": "scan(config) yields the devices that exist in stable order and opens nothing",
    "register": "the register function of a pack adds its kernels, and raises nothing",
    "Device.open": "open is called once per HostContext before the first use, and raises Unavailable(reason, "
                   "hint=remedy) where the device cannot be used",
    "Device.close": "close is called once per HostContext after every buffer is gone; the device may be opened again",
    "Device.allocate": "allocate(nbytes) gives a buffer of its own, or None when there is no memory; it raises nothing",
    "Device.free": "free gives the memory back; it is stream-ordered: what is enqueued already may still use the "
                   "buffer",
    "Device.wrap": "wrap(host) gives a buffer over the host array's own memory, as it is now, which nobody writes; or "
                   "None where that memory is unfit",
    "Device.copy_in": "copy_in(host, buffer, stream) enqueues a copy of the host array's bytes, all of them and no "
                      "more, to the start of the buffer; the host array is only read",
    "Device.copy_out": "copy_out(buffer, host, stream) enqueues a copy from the start of the buffer to the host "
                       "array's bytes, all of them and no more",
    "Device.synchronize": "synchronize(event) blocks until everything that was enqueued on the stream before the event "
                          "is done, and raises the device's error",
    "streams": "what is enqueued on one stream runs in the order in which it was enqueued",
    "threads": "everything but scan, open and close is called on threads that run steps, several at once",
    "errors": "whatever fails within a step is raised as one weft.errors class, and the device stays usable",
    "kernels": "a kernel gives what TensorFlow's op gives, within the tolerance of the element type; what it cannot do "
               "it declines at bind",
    "kernels.outputs": "a kernel writes every element of its outputs, whatever was there; it returns nothing, or an "
                       "output",
    "kernels.inputs": "a kernel only reads its inputs; it writes one where it is also the buffer of an output",
    "placement": "a node runs on the device that it asks for, where that has a kernel which does not decline",
    "feeds": "a feed of any memory layout is its elements",
    "leaks": "what a session, a frame or a host takes it gives back: buffers, threads, files",
}
