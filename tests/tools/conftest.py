"""Fixtures of the commands' tests."""

import pytest
from builders.graphs import node, placeholder
from harness.command_line import command, digits, own_runtime, process, saved
from heald.runtime.values import dtypes

__all__ = ["command", "digits", "own_runtime", "process", "saved"]


@pytest.fixture
def twice(saved):
    """y = x + x, of any number of rows of two."""
    return saved(placeholder("x", (None, 2)), node("y", "AddV2", "x", "x"))


@pytest.fixture
def priced(saved):
    """Two inputs: cost = price + price, and the text itself."""
    return saved(placeholder("price", (None,)), node("cost", "AddV2", "price", "price"),
                 placeholder("name", (None,), dtypes.string), node("same", "Identity", "name", T=dtypes.string))
