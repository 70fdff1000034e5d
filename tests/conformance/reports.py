"""Runs of the conformance suite in another process, and their reports."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree


class Report:
    """The report of a run in another process: outcomes and messages by device and case."""

    def __init__(self, folder: Path, *arguments: str, plugins: str = "[]") -> None:
        xml = folder / "report.xml"
        command = [sys.executable, "-m", "pytest", "--pyargs", "heald_conformance", "--conformance-quick", "-q",
                   f"--junitxml={xml}", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]
        environ = os.environ | {"HEALD_PLUGINS__LOAD": plugins, "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environ, check=False,
                              timeout=300)
        self.status, self.output = done.returncode, done.stdout + done.stderr
        self.failures: dict[tuple[str, str], str] = {}
        self.skipped: dict[tuple[str, str], str] = {}
        self.passed: Counter[str] = Counter()
        self.names: set[tuple[str, str]] = set()
        for entry in ElementTree.parse(xml).iter("testcase") if xml.exists() else ():  # noqa: S314 - we wrote it
            key = entry.get("classname", "").rpartition(".")[2], entry.get("name", "")
            self.names.add(key)
            failure, skip = entry.find("failure"), entry.find("skipped")
            if failure is not None:
                self.failures[key] = failure.text or failure.get("message", "")
            elif skip is not None:
                self.skipped[key] = skip.get("message", "")
            else:
                self.passed[key[0]] += 1
