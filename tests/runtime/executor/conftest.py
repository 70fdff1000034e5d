"""These tests look at single calls: no pass removes or changes the nodes that they have written."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def _as_written(graphs_as_written: None) -> None:
    pass
