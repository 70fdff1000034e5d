"""Fixtures of the commands' tests."""

from command_line import command, digits, own_runtime, process, saved

__all__ = ["command", "digits", "own_runtime", "process", "saved"]
