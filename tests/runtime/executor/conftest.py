"""These tests are about what runs, call by call: no pass takes away or changes what they have written."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def _as_written(graphs_as_written: None) -> None:
    pass
