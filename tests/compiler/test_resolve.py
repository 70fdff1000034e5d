"""Attributes of nodes are those that their ops declare."""

from __future__ import annotations

import re

import pytest
from weft.compiler.resolve import checked
from weft.contract.op import AttrDef
from weft.errors import InvalidArgument
from weft.graph.attr_value import Func, ShapeAttr
from weft.values import dtypes

VALUES = {"string": "a", "shape": ShapeAttr((2,)), "bool": True, "int": 1, "float": 0.5, "type": dtypes.float32,
          "func": Func("f")}


@pytest.mark.parametrize("given", VALUES)
@pytest.mark.parametrize("kind", VALUES)
def test_an_attribute_has_the_declared_type(kind, given):
    value = VALUES[given].encode() if given == "string" else VALUES[given]
    for of, written, read in ((kind, value, VALUES[given]), (f"list({kind})", [value], (VALUES[given],))):
        if given == kind:
            assert checked(AttrDef("a", of), written) == read
        else:
            with pytest.raises(InvalidArgument, match=re.escape(f"attribute 'a' must be {of}")):
                checked(AttrDef("a", of), written)
