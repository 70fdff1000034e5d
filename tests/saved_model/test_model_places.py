"""Models in archives and under folders of versions: every command finds them."""

from __future__ import annotations

import gc
import shutil
import tarfile
import zipfile
from pathlib import Path

import heald
import numpy as np
import pytest
from heald.cli import main
from heald.errors import InvalidArgument, NotFound

DATA = Path(__file__).parents[1] / "data"
TF1, TABLES, KERAS = (DATA / "saved_models" / name / "model" for name in ("tf1", "tables", "keras"))
FROZEN = DATA / "graphs" / "keras_tiny_cnn.pb"


def pack(file: Path, *sources: tuple[Path, str]) -> Path:
    """Write an archive of these files and folders, each under a name of its own."""
    if file.suffix == ".zip":
        with zipfile.ZipFile(file, "w") as opened:
            for source, name in sources:
                for path in [source] if source.is_file() else source.rglob("*"):
                    opened.write(path, str(Path(name) / path.relative_to(source)))
    else:
        with tarfile.open(file, "w:gz") as archive:
            for source, name in sources:
                archive.add(source, name)
    return file


@pytest.mark.parametrize("name", ["m.tar.gz", "m.zip", "weights.bin"])
@pytest.mark.parametrize("place", [".", "m", "a/b/m", "m/3"])
def test_a_saved_model_in_an_archive_is_loaded(tmp_path: Path, name: str, place: str) -> None:
    archive = pack(tmp_path / name, (TF1, place))
    x = np.ones((2, 1), "f4")
    model = heald.load(archive)
    gc.collect()
    np.testing.assert_array_equal(model(x), heald.load(TF1)(x))


def test_state_in_an_archive_is_read_after_loading(tmp_path: Path) -> None:
    archive = pack(tmp_path / "m.tar.gz", (TABLES, "m"))
    signature = heald.load(archive).signatures["serving_default"]
    archive.unlink()
    gc.collect()
    direct = heald.load(TABLES)
    feeds = {name: np.full([size or 2 for size in meta.shape or ()], b"a" if meta.dtype.name == "string" else 1,
                           object if meta.dtype.name == "string" else meta.dtype.name)
             for name, meta in direct.inputs.items()}
    assert str(signature(feeds)) == str(direct(feeds))


def test_an_archive_of_a_frozen_graph_is_loaded_and_a_saved_model_comes_before_it(tmp_path: Path) -> None:
    frozen = pack(tmp_path / "f.zip", (FROZEN, "export/frozen.pb"))
    assert heald.load(frozen).outputs == heald.load(FROZEN).outputs
    both = pack(tmp_path / "b.zip", (FROZEN, "export/frozen.pb"), (TF1, "export/saved_model"))
    assert heald.load(both).outputs == heald.load(TF1).outputs


def test_an_archive_without_one_model_lists_what_it_has(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("notes")
    with pytest.raises(NotFound, match=r"the archive has no model: a/notes.md"):
        heald.load(pack(tmp_path / "n.zip", (tmp_path / "notes.md", "a/notes.md")))
    with pytest.raises(InvalidArgument, match="the archive has 2 models: a, b"):
        heald.load(pack(tmp_path / "two.tar.gz", (TF1, "a"), (KERAS, "b")))
    with pytest.raises(NotFound, match="the archive has no file"):
        heald.load(pack(tmp_path / "none.zip"))


@pytest.mark.parametrize("command", [["inspect"], ["ops", "--missing"], ["explain"], ["run", "--input", "x=1"]])
def test_commands_find_the_model_in_an_archive_and_among_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    shutil.copytree(TF1, tmp_path / "m" / "7")
    for path in (pack(tmp_path / "m.zip", (TF1, "m")), tmp_path / "m"):
        assert main([command[0], *command[1:], str(path)]) == 0, capsys.readouterr().err


def test_the_highest_version_is_the_model(tmp_path: Path) -> None:
    for version, source in (("9", TF1), ("10", KERAS), ("011", TF1)):
        shutil.copytree(source, tmp_path / "m" / version)
    assert heald.load(tmp_path / "m").outputs == heald.load(TF1).outputs
    shutil.rmtree(tmp_path / "m" / "011")
    assert heald.load(tmp_path / "m").outputs == heald.load(KERAS).outputs
    assert heald.load(tmp_path / "m", format="saved_model").outputs == heald.load(KERAS).outputs
    (tmp_path / "m" / "99").mkdir()
    (tmp_path / "m" / "later").mkdir()
    assert heald.load(tmp_path / "m").outputs == heald.load(KERAS).outputs
