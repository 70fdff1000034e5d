"""Classify and regress: signatures that take serialized Examples.

A signature of either method has one input, `inputs`, of serialized Examples. Classify has the outputs `classes`
(strings) and `scores` (floats), or one of them; regress has `outputs`, a float for each example.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from heald.errors import FailedPrecondition, InvalidArgument

from .models.servable import Lease
from .models.served_model import CLASSIFY, DEFAULT_SIGNATURE, REGRESS, ServedSignature
from .predict import Arrays

INPUTS, CLASSES, SCORES, OUTPUTS = "inputs", "classes", "scores", "outputs"


class Method(NamedTuple):
    """`name`: the method of the signature. `outputs`: the outputs of which it needs at least one."""

    name: str
    verb: str
    outputs: tuple[str, ...]

    def signature_of(self, lease: Lease, name: str, *, checks_method: bool = False) -> ServedSignature:
        """The signature. Raises InvalidArgument where there is none, or one of another form."""
        name = name or DEFAULT_SIGNATURE
        signature = lease.signatures.get(name)
        if signature is None:
            raise InvalidArgument(f"No signature was found with the name: {name}")
        if checks_method and signature.method != self.name:
            raise InvalidArgument(f"Expected {self.verb} signature method_name to be {self.name}. Was: "
                                  f"{signature.method}")
        if [*signature.inputs] != [INPUTS]:
            raise InvalidArgument(f"Expected one input Tensor called '{INPUTS}', given {sorted(signature.inputs)}")
        if not set(self.outputs) & signature.outputs.keys():
            raise InvalidArgument(f"Expected {self.verb} signature outputs to contain at least one of: "
                                  f"{', '.join(self.outputs)}. Signature was: {sorted(signature.outputs)}")
        return signature


CLASSIFICATION = Method(CLASSIFY, "classification", (CLASSES, SCORES))
REGRESSION = Method(REGRESS, "regression", (OUTPUTS,))


def classifications(outputs: Arrays, count: int) -> tuple[Any, Any]:
    """The classes and the scores, an array [count, n] each, or None. Raises FailedPrecondition for other shapes."""
    classes, scores = outputs.get(CLASSES), outputs.get(SCORES)
    for name, array in ((CLASSES, classes), (SCORES, scores)):
        if array is not None and (np.ndim(array) != 2 or len(array) != count):
            raise FailedPrecondition(f"Expected Tensor {name} to be of shape [{count}, n], given {np.shape(array)}")
    if classes is not None and scores is not None and classes.shape != scores.shape:
        raise FailedPrecondition("Tensors class and score should match in their shapes")
    if scores is not None and scores.dtype != np.float32:
        raise InvalidArgument(f"Expected scores Tensor of float, given {scores.dtype}")
    return classes, scores


def regressions(outputs: Arrays, count: int) -> Any:
    """The values, an array [count]. Raises FailedPrecondition for another shape or type."""
    values = np.asarray(outputs[OUTPUTS])
    if values.shape not in ((count,), (count, 1)):
        raise FailedPrecondition(f"Expected output Tensor shape to be either [{count}] or [{count}, 1], given "
                                 f"{list(values.shape)}")
    if values.dtype != np.float32:
        raise InvalidArgument(f"Expected output Tensor of float, given {values.dtype}")
    return values.reshape(count)
