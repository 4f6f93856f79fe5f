"""Croissant metadata of the data sets of config/datasets.yaml, made and checked by mlcroissant, without the network.

Every file of every layout is a FileObject with the size and checksum that the catalogue states, a file of an archive
is contained in it. Files for which nobody publishes a checksum are described without one, and their data set is marked
as live, as Croissant demands: none is invented. Text files have a record set of their lines; the other formats (idx,
pickles, MATLAB) are none that Croissant can extract fields from.
"""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from fedrepro.files import write_json
from fedrepro.report.publication.optional import needed

#: the licences of the catalogue that have an address; others stay the text that they are
LICENCES = {"MIT": "https://spdx.org/licenses/MIT", "CC BY 4.0": "https://spdx.org/licenses/CC-BY-4.0"}
FORMATS = {  # suffix → media type; the longest suffix counts
    ".tar.gz": "application/x-tar",
    ".gz": "application/gzip",
    ".zip": "application/zip",
    ".npz": "application/zip",
    ".json": "application/json",
    ".csv": "text/csv",
    ".txt": "text/plain",
}
OTHER = "application/octet-stream"
NESTED = "//"  # between an archive in an archive and its member


def write_all(folder: Path, entries: Mapping[str, Mapping[str, Any]]) -> list[Path]:
    """Write <folder>/<data set>.json for each entry of the catalogue."""
    written = [folder / f"{name}.json" for name in entries]
    for path in written:
        write_json(path, described(path.stem, entries[path.stem]))
    return written


def described(name: str, entry: Mapping[str, Any]) -> Any:
    """The Croissant metadata of one data set as JSON-LD; mlcroissant's ValidationError where it is wrong."""
    mlc = needed("mlcroissant")
    files = file_objects(entry)
    context = mlc.Context(is_live_dataset=any(map(_unchecked, files.values())) or None)
    objects = [mlc.FileObject(ctx=context, id=id, **file) for id, file in files.items()]
    texts = [id for id, file in files.items() if file["encoding_formats"][0].startswith("text/")]
    return mlc.Metadata(
        ctx=context,
        id=name,
        name=entry["title"],
        description=_description(entry),
        cite_as=entry["citation"],
        license=[LICENCES.get(entry["licence"], entry["licence"])],
        distribution=objects,
        record_sets=[_lines(mlc, context, id) for id in texts],
    ).to_json()


def file_objects(entry: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Id → arguments of a FileObject: archives by their names, files by their paths below DATA_DIR. A file of several
    layouts is described once, as in the first of them."""
    found: dict[str, dict[str, Any]] = {}
    for layout, spec in entry["layouts"].items():
        for name, archive in spec.get("archives", {}).items():
            found.setdefault(name, _file(name, archive, f"archive of the layout {layout}"))
        whole = "" if spec.get("complete", True) else ", which is a sample"
        for file in spec["files"]:
            about = _file(file["path"], file, f"{file['path']} below DATA_DIR; layout {layout}{whole}")
            *outer, member = file.get("member", "").split(NESTED)
            within = file.get("archive")
            for inner in outer:
                about_inner = _file(inner, {"archive": within}, f"archive in {within}")
                found.setdefault(inner, {**about_inner, "contained_in": [within]})
                within = inner
            if within:
                about |= {"content_url": member, "contained_in": [within]}
            found.setdefault(file["path"], about)
    return found


def _file(path: str, spec: Mapping[str, Any], description: str) -> dict[str, Any]:
    """A file on its own: one without an address is named by its path below DATA_DIR."""
    addresses = [spec["url"]] if isinstance(spec.get("url"), str) else list(spec.get("url", []))
    kind = "sha256" if "sha256" in spec else "md5"
    return {
        "name": PurePosixPath(path).name,
        "description": description + ("" if addresses or "archive" in spec else "; no address serves it"),
        "content_url": addresses[0] if addresses else path,
        "same_as": addresses[1:] or None,
        "content_size": f"{spec['bytes']} B" if "bytes" in spec else None,
        "encoding_formats": [next((kind for end, kind in FORMATS.items() if path.endswith(end)), OTHER)],
        kind: spec.get(kind),
    }


def _unchecked(file: Mapping[str, Any]) -> bool:
    """Whether neither the file nor the archive that holds it has a checksum to be found by."""
    return not (file.get("contained_in") or file.get("md5") or file.get("sha256"))


def _description(entry: Mapping[str, Any]) -> str:
    manual = f" {entry['manual']}." if "manual" in entry else ""
    return f"{entry['title']} ({entry['size']}). Licence: {entry['licence']}.{manual}"


def _lines(mlc: Any, context: Any, file: str) -> Any:
    """The lines of a text file, numbered."""
    name = f"{PurePosixPath(file).stem}_lines"
    kinds = {"number": ("lineNumbers", mlc.DataType.INTEGER), "line": ("lines", mlc.DataType.TEXT)}
    fields = [
        mlc.Field(
            ctx=context,
            id=f"{name}/{field}",
            name=field,
            data_types=[kind],
            source=mlc.Source(ctx=context, file_object=file, extract=mlc.Extract(ctx=context, file_property=part)),
        )
        for field, (part, kind) in kinds.items()
    ]
    return mlc.RecordSet(ctx=context, id=name, name=name, description=f"the lines of {file}", fields=fields)
