"""Every real file in the data folder is the one that config/datasets.yaml declares."""

from __future__ import annotations

import pytest

from fedrepro.data.catalogue import catalogue, find, present, verify


@pytest.mark.parametrize("name", catalogue())
def test_what_is_there_verifies(data_dir, name):
    if present(name, [data_dir]) is None:
        pytest.skip(f"the real files of {name} are not in the data folder")
    found = find(name, "real", [data_dir])
    spec = catalogue()[name]["layouts"][found.layout]
    assert set(found.paths) == {file["path"] for file in spec["files"]}
    for file in spec["files"]:
        kind = next((k for k in ("sha256", "md5") if k in file), None)
        if kind:
            assert found.checksums[file["path"]] == f"{kind}:{file[kind]}"


def test_single_files_of_layouts_that_are_not_whole_verify_too(data_dir):
    here = {
        file["path"]: file
        for spec in catalogue().values()
        for layout in spec["layouts"].values()
        for file in layout["files"]
        if (data_dir / file["path"]).is_file()
    }
    if not here:
        pytest.skip("no real file of any data set is in the data folder")
    for path, file in here.items():
        verify(data_dir / path, file)
