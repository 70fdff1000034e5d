"""heald serve: models over HTTP and gRPC, by the protocols of TensorFlow Serving.

A request passes four layers. Each knows the layer below it, and none above.

    http/      bytes <-> requests: connections, deadlines, sizes, and who may ask
    rest/      TensorFlow Serving's REST interface: paths, JSON, statuses
    grpc/      its gRPC, on a server and a port of its own
    v2/        the Open Inference Protocol, on both servers
    page/      the page at /, for people
    predict    the neutral core: a leased version and named arrays -> a future of named arrays
    models/    versions of models: found, loaded, warmed up, served, drained

`workers/` runs several such servers in processes of their own.

The event loop parses and writes; models run in threads, unless their runs are brief (`brief_runs`).
A front for another protocol stands beside `rest/` and calls `predict` alone.
"""
