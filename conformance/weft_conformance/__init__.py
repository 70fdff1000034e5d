"""The conformance suite of weft's devices: what every device does, whoever wrote it.

    pytest --pyargs weft_conformance --device OPENCL:0

Each case is a function, too: `weft_conformance.case("memory.one_byte_is_copied_and_no_more")("OPENCL:0")` raises
Broken where the device breaks the contract, and NotApplicable where it has not what the case needs.
"""

from .case import Case, case, cases
from .settings import Settings, SettingsError, load_settings
from .verdict import Broken, NotApplicable

__all__ = ["Broken", "Case", "NotApplicable", "Settings", "SettingsError", "case", "cases", "load_settings"]
