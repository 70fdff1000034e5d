"""The plugin of heald on Ray. Every start of heald imports this module, so the module is light and imports no Ray."""

HEALD_API = (1, 1)
