"""The version of core, which `heald.__version__` is."""

__version__ = "0.1.0"
