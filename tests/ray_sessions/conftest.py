"""Fixtures of the tests of targets."""

from harness.command_line import command

__all__ = ["command"]
