"""The version of the contract that a plugin is written against: `HEALD_API` in the plugin's module."""

API = (1, 4)  # major: incompatible changes; minor: additions
