"""gRPC: TensorFlow Serving's services, health, and reflection. Another protocol adds its service to the same server.

A service is a table of methods: each takes a parsed message and an RpcCall, and returns a message, or yields several.
Errors of every kind become a status in one place, `call_handlers`.

`services`: The services by name, with the messages of their methods. `call_handlers`: Bytes to messages and back.
`call_log`: Lines of the access log, and trace ids. `message_reading`: Messages, read once there is room.
`tensors`: TensorProto and arrays. `prediction_service`, `model_service`: TensorFlow Serving's services.
`health`, `reflection`: gRPC's own services. `grpc_server`: The server, its ports and its thread.
"""
