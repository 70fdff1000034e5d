"""TensorFlow Serving's REST interface. Its code counts where its document differs.

`paths`: The paths, and the calls that they name. `json_text`: JSON in, with the liberties of TensorFlow Serving.
`request_tensors`: JSON to tensors. `response_text`: Tensors to JSON, number by number as there.
`examples`: The bodies and answers of classify and regress. `model_info`: Status and metadata.
`rest_api`: The route of /v1/.
"""
