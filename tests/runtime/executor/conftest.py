"""These tests look at single calls: no pass removes or changes the nodes that they have written."""

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def _as_written(graphs_as_written: None) -> None:
    pass


@pytest.fixture(scope="module")
def quick_collections() -> None:
    """Collections look at the objects of this module's tests alone. The others stay frozen, as those of conftest.py."""
    gc.collect()
    gc.freeze()
