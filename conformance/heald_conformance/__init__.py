"""The conformance suite: the contract that every device of heald keeps, as test cases.

    pytest --pyargs heald_conformance --device OPENCL:0
    pytest --pyargs heald_conformance --queue NAME

Each case is a function, too: `heald_conformance.case("memory.copies_of_no_bytes_do_nothing")("OPENCL:0")`. It raises
Broken where the device breaks the contract, and NotApplicable where the device lacks a feature that the case needs.
"""

from .case import Case, case, cases
from .settings import Settings, SettingsError, load_settings
from .verdict import Broken, NotApplicable

__all__ = ["Broken", "Case", "NotApplicable", "Settings", "SettingsError", "case", "cases", "load_settings"]
