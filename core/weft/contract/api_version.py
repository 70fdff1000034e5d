"""The version of the contract that plugins are written against: `WEFT_API` in a plugin's module."""

API = (1, 0)  # major: incompatible changes; minor: additions
