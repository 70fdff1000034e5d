"""A process that runs single ops by real TensorFlow, on its CPU: see against_tensorflow. Some requests
make TensorFlow end the process; the client starts another then.

It reads pickled (op, attributes, inputs, number of outputs, place) from stdin, and answers with the outputs, or with
the code and the message of an error. The place is "eager", or one of two graphs, in which nothing runs: in a "graph"
of constants the answer is the error of the op's shape function, which TensorFlow does not ask otherwise, or no outputs;
in the "shapes" of a graph of placeholders it is the shape of each output, None where the rank is unknown. A deprecated
op has no eager form: it runs in a session, in a graph of a version before its deprecation.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")  # only its kernels take dilated depthwise filters
Value = tuple[str, Any]  # kind of attribute, value as plain data


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    import tensorflow as tf
    from tensorflow.python.eager import context, execute  # type: ignore[import-untyped]
    from tensorflow.python.framework import op_def_registry  # type: ignore[import-untyped]

    def attr(kind: str, value: Any) -> Any:
        if kind.startswith("list("):
            return [attr(kind[5:-1], v) for v in value]
        return tf.as_dtype(value).as_datatype_enum if kind == "type" else value

    def last_producer(op: str) -> int:
        """The last GraphDef version with the op, or 0 for an op that is not deprecated."""
        return max(0, int(op_def_registry.get(op).deprecation.version) - 1)

    def in_a_graph(op: str, attrs: dict[str, Value], inputs: list[tuple[str, Any]], way: str) -> Any:
        with tf.Graph().as_default() as graph:
            tensors = [tf.constant(x, tf.as_dtype(dtype)) if way == "graph" else
                       tf.compat.v1.placeholder(tf.as_dtype(dtype), x.shape) for dtype, x in inputs]
            node = graph.as_graph_def().node.add(name="op", op=op, input=[t.op.name for t in tensors])
            for name, (kind, value) in attrs.items():
                fill(node.attr[name], kind, value)
            definition = graph.as_graph_def()
            definition.node.append(node)
            definition.versions.producer = last_producer(op) or definition.versions.producer
        try:
            with tf.Graph().as_default() as imported:
                tf.import_graph_def(definition, name="")
        except (ValueError, tf.errors.OpError) as error:
            return 3, str(error)
        if way == "session":
            feeds = {f"{tensor.op.name}:0": x for tensor, (_, x) in zip(tensors, inputs, strict=True)}
            return in_a_session(imported, feeds)
        outputs = imported.get_operation_by_name("op").outputs if way == "shapes" else ()
        return [None if x.shape.rank is None else x.shape.as_list() for x in outputs]

    def in_a_session(graph: Any, feeds: dict[str, Any]) -> Any:
        try:
            with tf.compat.v1.Session(graph=graph) as session:
                return session.run([*graph.get_operation_by_name("op").outputs], feeds)
        except tf.errors.OpError as error:
            message = error.message.partition("Node: 'op'\n")[2] or error.message
            return error.error_code, message.partition("\n")[0]

    def fill(to: Any, kind: str, value: Any) -> None:
        if kind.startswith("list("):
            to.list.SetInParent()
            for item in value:
                put_value(to.list, kind[5:-1], item, many=True)
        else:
            put_value(to, kind, value, many=False)

    def put_value(to: Any, kind: str, value: Any, *, many: bool) -> None:
        field = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type", "shape": "shape"}[kind]
        if kind == "shape":
            shape = tf.TensorShape(value if value is None else [None if n < 0 else n for n in value]).as_proto()
            (getattr(to, field).add() if many else getattr(to, field)).CopyFrom(shape)
            return
        plain = tf.as_dtype(value).as_datatype_enum if kind == "type" else value
        plain = plain.encode("utf-8", "surrogateescape") if isinstance(plain, str) else plain
        if many:
            getattr(to, field).append(plain)
        else:
            setattr(to, field, plain)

    def run(op: str, attrs: dict[str, Value], inputs: list[tuple[str, Any]], outputs: int, way: str) -> Any:
        if way != "eager":
            return in_a_graph(op, attrs, inputs, way)
        try:
            if last_producer(op):
                return in_a_graph(op, attrs, inputs, "session")
            tensors = [tf.constant(x, tf.as_dtype(dtype)) for dtype, x in inputs]
            flat = [part for name, (kind, value) in attrs.items() for part in (name, attr(kind, value))]
            results = execute.execute(op.encode(), outputs, tensors, tuple(flat), context.context())
            return [r.numpy() for r in results or []]
        except tf.errors.OpError as error:
            return error.error_code, error.message
        except (TypeError, ValueError) as error:
            return None, str(error)  # it could not be asked

    while True:
        try:
            request = pickle.load(sys.stdin.buffer)  # noqa: S301 - we were started by who asks
        except EOFError:
            return
        pickle.dump(run(*request), answers)
        answers.flush()


if __name__ == "__main__":
    main()
