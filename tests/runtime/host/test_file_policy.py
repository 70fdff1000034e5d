"""The policy of files: an op opens files in the folders of [files] only, on every path."""

from __future__ import annotations

import pytest
from heald.errors import InvalidArgument, PermissionDenied
from heald.runtime.config.files import FilesConfig
from heald.runtime.host.file_policy import FilePolicy


@pytest.fixture
def tree(tmp_path):
    for folder in ("in/deep", "out", "inside"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "out" / "secret").write_bytes(b"x")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out")
    (tmp_path / "in" / "file-link").symlink_to(tmp_path / "out" / "secret")
    (tmp_path / "in" / "circle").symlink_to(tmp_path / "in" / "circle")
    (tmp_path / "way-in").symlink_to(tmp_path / "in")
    return tmp_path


@pytest.mark.parametrize("path", ["in/x", "in/deep/../x", "way-in/deep/x", "out/../in/x", "in/link/../in/x"])
def test_paths_that_lead_into_the_folder_are_permitted(tree, path):
    policy = FilePolicy(FilesConfig(read=(str(tree / "in"),)))
    permitted_path = policy.path("RestoreV2", f"{tree}/{path}", "read")
    assert permitted_path == (tree / path).resolve()
    with pytest.raises(PermissionDenied, match=r"may not write"):
        policy.path("RestoreV2", f"{tree}/{path}", "write")


@pytest.mark.parametrize("path", ["x", "in/../x", "inside/x", "in/link/secret", "in/file-link", "in/deep/../../x",
                                  "in/.."])
def test_paths_that_lead_out_are_refused(tree, path):
    policy = FilePolicy(FilesConfig(read=(str(tree / "in"),)))
    with pytest.raises(PermissionDenied, match=r"RestoreV2 may not read .*\[files\] read"):
        policy.path("RestoreV2", f"{tree}/{path}".encode(), "read")


def test_an_allowed_op_opens_any_file_and_others_none(tree):
    policy = FilePolicy(FilesConfig(allow_ops=("SaveV2",)))
    assert policy.path("SaveV2", f"{tree}/x", "write") == tree.resolve() / "x"
    assert policy.permits("SaveV2", ["read", "write"])
    assert not policy.permits("RestoreV2", ["read"])
    with pytest.raises(PermissionDenied):
        policy.path("RestoreV2", f"{tree}/x", "read")


def test_an_op_of_two_accesses_needs_folders_for_both(tree):
    assert not FilePolicy(FilesConfig(read=(str(tree),))).permits("MergeV2Checkpoints", ["read", "write"])
    assert FilePolicy(FilesConfig(read=(str(tree),), write=(str(tree),))).permits("MergeV2Checkpoints",
                                                                                  ["read", "write"])


@pytest.mark.parametrize("path", [b"a\0b", b"in/circle/x"])
def test_a_name_that_no_file_can_have_is_a_typed_error(tree, path):
    policy = FilePolicy(FilesConfig(read=(str(tree),)))
    with pytest.raises((InvalidArgument, PermissionDenied)):
        policy.path("RestoreV2", bytes(tree) + b"/" + path, "read")
