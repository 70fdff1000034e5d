"""The Open Inference Protocol, version 2, over HTTP and gRPC, with the extensions that Triton's clients use.

`inference` is the protocol without a transport: documents about servers and models, and one inference. Both fronts
turn their bytes into an InferCall, and its outputs into bytes.

`datatypes`: The names of element types. `elements`: Raw bytes, and data of JSON. `statistics`: Counts of each version.
`model_documents`: Metadata and configuration. `inference`: The calls. `model_control`: Load and unload.
`inference_api`: The front over HTTP. `binary_body`: Its binary tensors. `inference_service`: The front over gRPC.
"""
