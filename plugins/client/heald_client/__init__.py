"""A client of model servers: NumPy in and out.

A protocol turns a PredictCall into bytes and an answer into arrays. A transport carries bytes, and turns its faults
into ClientErrors. Only the two transports know a library of the network.

`client`: connect, and the clients. `calls`: A call, and the contract of protocols. `call_checks`: Checks of a caller's
arguments. `tls`: Certificates. `errors`: ClientError.
`elements`: Element types and raw bytes. `messages`: Protobuf messages in a pool of their own.
`rest_protocol`, `serving_grpc_protocol`: TensorFlow Serving's. `v2_http_protocol`, `v2_grpc_protocol`: The Open
Inference Protocol's. `http_transport`, `grpc_transport`: urllib3 and grpcio.
"""

from .calls import SignatureSpec, TensorSpec
from .client import AsyncClient, Client, connect, connect_async
from .errors import ClientError

__all__ = ["AsyncClient", "Client", "ClientError", "SignatureSpec", "TensorSpec", "connect", "connect_async"]
