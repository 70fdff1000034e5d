"""Any target under Atheris, where that is installed: `python -m fuzz.atheris_target TARGET [libFuzzer's options]`.

Coverage guides the mutation there, and a failure ends the process. Inputs are samples in their form as one file.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["heald"]):
    from . import judge, samples, targets


def main() -> None:
    name = sys.argv.pop(1)
    target = targets.TARGETS[name]
    folder = Path(tempfile.mkdtemp(prefix="heald-fuzz-"))
    judged = judge.Judge(folder)

    def one(data: bytes) -> None:
        try:
            sample = samples.unpack_sample(data, is_folder=target.is_folder)
        except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError, KeyError, EOFError):
            return  # no archive of a folder
        judged_outcome = judged(name, sample)
        if judged_outcome.is_failure:
            raise RuntimeError(f"{judged_outcome.kind}, {judged_outcome.where}\n{judged_outcome.text}")

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
