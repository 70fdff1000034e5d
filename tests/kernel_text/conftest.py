"""Tests of kernel text that run it ask for `driver`; the summary says which one it was."""

from collections.abc import Iterator

import pytest
from workers.run_plan import worker


@pytest.fixture(scope="session")
def driver() -> Iterator[str]:
    """The OpenCL platform that runs plans; skips the test where there is none."""
    if worker().platform is None:
        pytest.skip(f"{worker().reason}; make opencl-cpu")
    yield worker().platform
    worker().close()


def pytest_runtest_call(item: pytest.Function) -> None:
    if "driver" in item.fixturenames:
        item.user_properties.append(("kernel text tested", f"OpenCL C by {item.funcargs['driver']}"))
