"""A plugin that tests load by its path: it puts the fake driver in the place of the true one before a scan."""

import sys
from pathlib import Path

import weft_cuda.driver  # the true module, whose data types the fake driver shares
import weft_cuda.libraries

if (tests := str(Path(__file__).parents[1])) not in sys.path:
    sys.path.insert(0, tests)
from fake_cuda import fake_driver

WEFT_API = (1, 0)
sys.modules["weft_cuda.driver"] = fake_driver
weft_cuda.driver = fake_driver  # type: ignore[attr-defined]
weft_cuda.libraries._found = lambda _name: "a fake driver has no libraries"  # they would call the true driver
