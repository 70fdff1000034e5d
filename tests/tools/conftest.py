"""Fixtures of the commands' tests."""

from harness.command_line import command, digits, own_runtime, process, saved

__all__ = ["command", "digits", "own_runtime", "process", "saved"]
