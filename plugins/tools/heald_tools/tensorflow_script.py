"""The program that runs a model in a process of TensorFlow's interpreter (`tensorflow_run`). It imports nothing of
heald, and works with every Python that TensorFlow works with."""

# ruff: noqa: PTH123 - the interpreter may be old
import json
import sys
from typing import Any

NO_TENSORFLOW = 3


def main() -> int:
    request = json.load(sys.stdin)
    try:
        import tensorflow as tf
    except ModuleNotFoundError as error:
        if error.name != "tensorflow":
            raise
        return NO_TENSORFLOW
    import numpy as np

    with np.load(request["feeds"]) as recorded:
        feeds = {name: to_feed(recorded["inputs/" + name]) for name in request["fed"]}
    if request["is_saved_model"]:
        outputs, tensors = run_saved_model(tf, request, feeds), {}
    else:
        outputs, tensors = run_graph(tf, request, feeds)
    arrays = {"outputs/" + name: storable(name, array) for name, array in outputs.items()}
    arrays.update({"tensors/" + name: storable(name, array) for name, array in tensors.items()})
    np.savez(request["output"], **arrays)
    return 0


def run_saved_model(tf: Any, request: Any, feeds: Any) -> Any:
    """The outputs of a signature by name."""
    loaded = tf.saved_model.load(request["model"], tags=request["tags"])
    signature = loaded.signatures[request["signature"] or "serving_default"]
    arguments = signature.structured_input_signature[1]
    tensors = {name: tf.constant(value, arguments[name].dtype) for name, value in feeds.items()}
    results = signature(**tensors)
    return {name: results[name].numpy() for name in request["fetched"]}


def run_graph(tf: Any, request: Any, feeds: Any) -> Any:
    """The outputs of a graph by name, and inner tensors, where a run can fetch them."""
    message = tf.compat.v1.GraphDef()
    if request["model"].endswith(".pb"):
        with open(request["model"], "rb") as file:
            message.ParseFromString(file.read())
    else:
        from google.protobuf import text_format

        with open(request["model"], encoding="utf-8") as file:
            text_format.Parse(file.read(), message)
    with tf.Graph().as_default() as graph:
        tf.import_graph_def(message, name="")
    names = {node.name for node in message.node}
    wanted = [name for name in request["tensors"] if name.rpartition(":")[0] in names]
    fed = {request["fed"][name]: cast(graph, request["fed"][name], value) for name, value in feeds.items()}
    with tf.compat.v1.Session(graph=graph) as session:
        try:
            outputs, tensors = session.run([request["fetched"], {name: name for name in wanted}], fed)
        except (tf.errors.OpError, ValueError):  # tensors in loops and branches have no value outside
            outputs, tensors = session.run(request["fetched"], fed), {}
    return outputs, tensors


def cast(graph: Any, name: str, value: Any) -> Any:
    """The value in the type of its tensor: recordings lack bfloat16."""
    dtype = graph.get_tensor_by_name(name).dtype.as_numpy_dtype
    return value if value.dtype == object else value.astype(dtype)


def to_feed(array: Any) -> Any:
    return array.astype(object) if array.dtype.kind == "S" else array


def storable(name: str, array: Any) -> Any:
    """The array in a type that NumPy's files have."""
    import numpy as np

    array = np.asarray(array)
    if array.dtype.kind == "V":
        return array.astype(np.float32)
    if array.dtype != object:
        return array
    fixed = array.astype(bytes)
    if not np.array_equal(fixed.astype(object), array):
        raise ValueError(name + " has strings that end in zero bytes, which NumPy's files cannot hold")
    return fixed


if __name__ == "__main__":
    sys.exit(main())
