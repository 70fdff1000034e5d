"""A network and process namespace of its own for a command, where the system permits one."""

from __future__ import annotations

import shutil
import subprocess

# The command sees loopback alone, and each process that it leaves behind ends with it.
NAMESPACE = ("unshare", "-rnp", "--fork", "--kill-child", "--mount-proc", "sh", "-c",
             'ip link set lo up && exec "$@"', "sh")


def namespace_words() -> tuple[str, ...]:
    """Return the words before a command; none where the system has no namespaces."""
    if not all(map(shutil.which, ("unshare", "ip"))):
        return ()
    works = subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0
    return NAMESPACE if works else ()
