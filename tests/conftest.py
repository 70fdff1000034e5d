"""Property tests search anew with every run, except at the gate, where the same commit must give the same answer."""

import os

from hypothesis import settings

settings.register_profile("weft", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("weft")
