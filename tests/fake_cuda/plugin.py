"""A plugin that tests load by its path: it puts the fake driver in the place of the true one before a scan."""

import sys
from pathlib import Path

import heald_cuda.driver  # the true module, whose data types the fake driver shares
import heald_cuda.libraries

if (tests := str(Path(__file__).parents[1])) not in sys.path:
    sys.path.insert(0, tests)
from fake_cuda import fake_driver

HEALD_API = (1, 0)
sys.modules["heald_cuda.driver"] = fake_driver
heald_cuda.driver = fake_driver  # type: ignore[attr-defined]
heald_cuda.libraries.open_library = lambda _name: "a fake driver has no libraries"  # they would call the true driver
