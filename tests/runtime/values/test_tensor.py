"""Metadata of a tensor: only types of heald and tuples make one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from heald.errors import InvalidArgument
from heald.runtime.values import dtypes
from heald.runtime.values.tensor import TensorMetadata


@pytest.mark.parametrize(("dtype", "name"), [
    (np.float32, "float32"), ("float32", "'float32'"), (np.dtype("f4"), r"dtype\('float32'\)"), (float, "float"),
    (None, "None"),
])
def test_another_element_type_is_told_with_an_example(dtype: Any, name: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"^{name} is no type of heald.api.dtypes; .*such as dtypes.float32"):
        TensorMetadata(dtype, (2,))


@pytest.mark.parametrize("shape", [[2], {2: 3}, np.zeros(2)])
def test_a_shape_that_is_no_tuple_is_told(shape: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"a shape is a .*expected a tuple such as \(None, 3\), or None"):
        TensorMetadata(dtypes.float32, shape)
