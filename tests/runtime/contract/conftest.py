"""Throw-away distributions for these tests."""

from harness.distributions import shared_site, site

__all__ = ["shared_site", "site"]
