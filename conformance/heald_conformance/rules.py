"""The rules of the contract that cases refer to, by the place that states them. Messages quote both."""

PROTOCOL = "heald.runtime.contract.device.Device"

RULES = {
    "Device": f"{PROTOCOL} has type, uid, attributes and open, close, allocate, free, copy_in, copy_out, record, "
              "synchronize; the other methods in its comments are optional",
    "Device.uid": "`uid` differs from the uid of every other device of the type and is stable across processes: serial "
                  "number, bus address, ...",
    "Device.attributes": "`memory` (bytes, an int), `model`, `driver` (text), `host_visible` (True when its buffers "
                         "are host memory)",
    "Device.host_visible": "allocate of a host_visible device returns a one-dimensional, 64-byte aligned uint8 array",
    "scan": "scan(config) yields the devices that exist in stable order and opens nothing",
    "register": "the register function of a pack adds its kernels and raises nothing",
    "Device.open": "open is called once per HostContext before the first use, and raises Unavailable(reason, "
                   "hint=remedy) where the device cannot be used",
    "Device.close": "close is called once per HostContext after every buffer is gone; the device may be opened again",
    "Device.allocate": "allocate(nbytes) returns a new buffer, or None when memory is short; it raises nothing",
    "Device.free": "free returns the memory to the device; it is stream-ordered: work that is enqueued already may "
                   "still use the buffer",
    "Device.wrap": "wrap(host) returns a read-only buffer over the host array's own memory with its present contents, "
                   "or None where that memory is unfit",
    "Device.part": "part(buffer, start, nbytes) returns a buffer over these bytes of another, and orders its work with "
                   "the other's",
    "Device.copy_in": "copy_in(host, buffer, stream) enqueues a copy of the host array's bytes, all of them and no "
                      "more, to the start of the buffer; the host array is only read",
    "Device.copy_out": "copy_out(buffer, host, stream) enqueues a copy from the start of the buffer to the host "
                       "array's bytes, all of them and no more",
    "Device.synchronize": "synchronize(event) blocks until all work enqueued on the stream before the event is done, "
                          "and raises the device's error",
    "Device.wait": "wait(stream, event) has later work of the stream come behind an event of another one; the runtime "
                   "orders the streams of `queues` by it",
    "Device.elapsed": "elapsed(start, end) returns the seconds from an event to a later one, both of which have "
                      "happened, or None for an event without a time",
    "streams": "a stream runs work in the order in which it was enqueued",
    "threads": "every method but scan, open and close is called on threads that run steps, several at once",
    "errors": "a failure within a step is raised as one heald.errors class, and the device stays usable",
    "kernels": "a kernel's results equal those of TensorFlow's op, within the tolerance of the element type; a call "
               "that it cannot do is declined at bind",
    "kernels.outputs": "a kernel writes every element of its outputs, for their buffers hold arbitrary bytes; it "
                       "returns nothing, or an output",
    "kernels.inputs": "a kernel only reads its inputs; it writes an input whose buffer is also that of an output",
    "placement": "a node runs on the device that it requests if a kernel there does not decline",
    "feeds": "a feed may have any memory layout; only its elements count",
    "leaks": "sessions, frames and hosts release the buffers, threads and files that they take",
    "returns": "a call returns or raises; it never hangs",
    "queue.factory": "factory(config) returns a work queue for a WorkQueueConfig",
    "queue.tasks": "a work queue runs each task once",
    "queue.add_task": "add_task does not block, and does not run the task itself",
    "queue.add_blocking_task": "add_blocking_task runs a task apart from the non-blocking ones; False says that the "
                               "task was not taken",
    "queue.await_values": "await_values returns True once all values are available, and False when one is still "
                          "pending after the timeout",
    "queue.quiesce": "quiesce returns True once no task is queued or running, and False when one still is after the "
                     "timeout",
    "queue.errors": "an exception that leaves a task is a fault, which the queue reports and survives",
    "queue.in_task": "await_values and quiesce raise FailedPrecondition when a task of this queue calls them",
    "queue.close": "close drops the tasks that have not started and ends the threads; it waits only a moment for a "
                   "task that does not end; every other method then raises FailedPrecondition",
    "queue.fork": "every method but close raises FailedPrecondition at once in a forked child, and never hangs",
    "queue.parallelism_level": "parallelism_level is the number of non-blocking tasks that run at a time",
    "allocator.factory": "factory() returns a host allocator",
    "allocator.allocate": "allocate returns a writable one-dimensional uint8 array of `nbytes` elements that starts at "
                          "a multiple of `alignment`",
    "allocator.memory": "ResourceExhausted when there is no memory or a limit would be passed; the allocator stays "
                        "usable",
    "allocator.ownership": "a buffer returns to its allocator once: when it is deallocated, or when the last array "
                           "over it is gone",
    "allocator.stats": "stats returns an AllocatorStats: None for a figure that is not counted, else numbers that "
                       "follow the buffers",
    "allocator.threads": "any thread may call any method",
    "pass.graph": "a pass returns a well-formed Graph that has every node of `context.kept`",
    "pass.values": "the kept nodes return the same values after a pass; the same bits if it preserves exact values",
    "pass.repeats": "a pass without `repeats` is idempotent: a second run changes nothing",
    "pass.deterministic": "a pass is a function of graph and context: equal graphs give equal graphs",
    "pass.input": "a pass changes no graph, node or array that it is given",
    "pass.declares": "`about`, `preserves` and `repeats` are lines of text; a pass keeps what `preserves` names",
    "loader.recognise": "recognise(path, head) returns True for a file of the format, False for any other; it raises "
                        "nothing",
    "loader.light": "recognise must be light: it runs for every file that is loaded",
    "loader.describe": "describe returns a Description, equal each time, also of a file opened with weights=False",
    "loader.weights": "describe reads no weights",
    "loader.signatures": "the chosen signature is one of `signatures`; its tensors are in the graph, its inputs and "
                         "outputs are those of the description",
    "loader.graph": "graph returns the graph of all signatures, a heald.api.Graph that runs",
    "loader.state": "an Initializer names nodes of the graph, and its values are arrays by tensor name",
    "loader.errors": "open and the Source raise errors of heald.errors for a file that cannot be read",
    "loader.threads": "both methods of a loader may be called from several threads at once",
    "rendezvous.factory": "the function returns a rendezvous: an object with send, recv and abort",
    "rendezvous.recv": "recv returns an AsyncValue; the n-th recv of a key receives the n-th send of the same key",
    "rendezvous.dead": "a dead tensor is DEAD for its receiver",
    "rendezvous.abort": "after abort send raises its error, and all pending and later recv values are it; the first "
                        "error stays",
    "rendezvous.waits": "no method blocks",
    "rendezvous.threads": "any thread may call",
    "handler.results": "calls through a handler have the device's results, one for each output of the op",
    "handler.errors": "a handler raises errors of heald; a failed input fails the results",
    "handler.inputs": "a handler writes no input that is not donated",
    "handler.pending": "the function never waits for a pending input",
    "handler.threads": "any thread may call",
    "compiler.claim": "claim returns disjoint convex groups of names of `part.nodes`",
    "compiler.deterministic": "claim is a function of the part: equal graphs have equal groups",
    "compiler.values": "the kernel of a group returns the values of its nodes, for any feeds and in every run",
    "compiler.operands": "a kernel writes every element of its results, and no input",
    "compiler.declines": "a refusal says why, and the nodes of a declined group run as without the compiler",
    "compiler.threads": "several threads may run a kernel at once",
    "session.factory": "factory(graph, config, target=, device=) returns an object with the methods of "
                       "SessionInterface",
    "session.run": "run returns the fetched tensors as NumPy arrays, in the structure of the fetches",
    "session.make_callable": "make_callable returns a function of the arrays to feed, in the order of `feeds`",
    "session.connections": "within a callable's steps a connection puts a tensor in the place of another",
    "session.rendezvous": "a step has a rendezvous of its own, in which its sends meet its recvs by key",
    "session.state": "variables stay between steps, until reset drops the state of their container",
    "session.extend": "extend adds the nodes and functions of a graph",
    "session.partial_run": "a partial run feeds and fetches one step in several calls",
    "session.placement": "placement returns the device of each node, by name",
    "session.errors": "every method raises errors of heald.errors, and the session stays usable",
    "session.close": "close ends the session; a second call does nothing",
    "session.threads": "several threads may call at once",
}
