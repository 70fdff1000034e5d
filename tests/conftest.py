"""Settings of all tests, and what the summary says of the golden cases."""

import os

import pytest
from hypothesis import settings

# Property tests search anew with every run, except at the gate, where the same commit must give the same answer.
settings.register_profile("weft", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("weft")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many of TensorFlow's recorded cases were run: tests record them as the property "golden cases"."""
    passed = terminalreporter.getreports("passed")
    counts = [count for report in passed for name, count in report.user_properties if name == "golden cases"]
    if counts:
        ways = "fed, as constants and between buffers"
        terminalreporter.write_line(f"golden cases passed on CPU:0, {ways}: {sum(counts)}")
