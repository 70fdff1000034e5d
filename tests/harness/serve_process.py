"""The command `heald serve` as a process: its ports, its workers, its lines."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

_PLACE = re.compile(r"at (?:http://)?127\.0\.0\.1:(\d+)")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class ServeProcess:
    """`words`: of the command. `grpc` has it serve gRPC, too."""

    def __init__(self, *words: Any, port: int | None = None, grpc: bool = False) -> None:
        self.port, self.grpc_port = port or free_port(), free_port() if grpc else 0
        command = [sys.executable, "-m", "heald", "serve", "--host=127.0.0.1", *map(str, words),
                   f"--rest_api_port={self.port}", *([f"--port={self.grpc_port}"] if grpc else [])]
        environment = {key: value for key, value in os.environ.items() if key not in ("MODEL_NAME", "MODEL_BASE_PATH")}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)

    def wait_until_ready(self) -> None:
        assert self.process.stderr is not None
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            match = _PLACE.search(line)
            if match and int(match[1]) == (self.grpc_port or self.port):
                return
        raise AssertionError("".join(lines))

    def worker_pids(self) -> list[int]:
        """Of the children of all threads."""
        files = Path(f"/proc/{self.process.pid}/task").glob("*/children")
        return [int(word) for file in files for word in file.read_text().split()]

    def text(self) -> str:
        """The lines of a process that has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def close(self) -> None:
        assert self.process.stderr is not None
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
