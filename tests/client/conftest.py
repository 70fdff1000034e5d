"""The fixture of a server, from the server's own tests."""

from serve.conftest import start

__all__ = ["start"]
