"""Commands in this process, and graphs in files."""

from harness.command_line import command, digits, own_runtime, process, saved

__all__ = ["command", "digits", "own_runtime", "process", "saved"]
