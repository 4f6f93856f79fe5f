"""The figures and tables on the page, and those of the bench: picture or rows, downloads, provenance."""

import base64
import json
from pathlib import Path
from typing import Any

from fedrepro.core.checksums import check
from fedrepro.errors import Damaged
from fedrepro.report.formats import DATA_LABELS, as_float, as_text, data_labels, duration, natural
from fedrepro.report.gather import as_dict, as_dicts, read, relative_url, table_of

# A larger csv or svg is linked by its path: no browser opens a page of 100 MB.
MAX_EMBED_BYTES = 4_000_000
MIME = {"png": "image/png", "svg": "image/svg+xml", "csv": "text/csv;charset=utf-8"}
#: files of `make bench`, in the order of the page, whose titles are in page.html.j2
SPEED = ("engine", "growth", "workflow", "gp", "gp_growth", "linear", "data")


def read_artefacts(
    results: Path, page_folder: Path, manifests: dict[str, dict[str, Any]], problems: list[str], *, embed: bool = True
) -> list[dict[str, Any]]:
    """Every artefact with picture or table, downloads and provenance; the paper's own first, in its order. Without
    `embed` the page contains only the pictures it shows, and links to all other files."""
    artefacts = []
    for path in sorted(results.glob("artefacts/*/*.json")):
        info = read(path, results, json.loads, problems)
        if not isinstance(info, dict):
            continue
        name = f"{path.parent.name}/{path.stem}"
        kind = "table" if info.get("kind") == "table" else "figure"
        texts = {key: as_text(info.get(key)) for key in ("title", "caption", "source", "scale", "seeds")}
        files = {suffix: path.with_suffix(f".{suffix}") for suffix in MIME}
        try:
            for file in filter(Path.is_file, files.values()):
                check(file)
        except Damaged as error:
            problems.append(str(error))
            continue
        picture = picture_of(files) if kind == "figure" else None
        data = info.get("data")
        shown = {
            **texts,
            "id": name,
            "study": path.parent.name,
            "title": texts["title"] or name,
            "kind": kind,
            "added": texts["source"] == "added",
            "data": data_labels(data if isinstance(data, list) else [data]),
            "diverged": int(as_float(info.get("diverged"))),
            "picture": picture,
            "broad": kind == "table" or (picture is not None and picture["width"] > 1.8 * picture["height"] > 0),
            "table": table_of(files["csv"], results, problems) if kind == "table" else None,
            "downloads": downloads_of(name, files, page_folder, has_picture=kind == "figure", embed=embed),
            "provenance": _provenance(info, manifests),
            "claims": [],
        }
        artefacts.append(shown)
    return sorted(artefacts, key=lambda item: (item["added"], natural(item["id"])))


def read_speed(results: Path, page_folder: Path, problems: list[str], *, embed: bool) -> list[dict[str, Any]]:
    """The bench in the results folder, else in the folder above, where `make bench` writes."""
    folder = next((f for f in (results / "bench", results.parent / "bench") if f.is_dir()), None)
    if folder is None:
        return []
    parts = []
    for name in SPEED:
        files = {suffix: folder / f"{name}.{suffix}" for suffix in MIME}
        if table := table_of(files["csv"], folder.parent, problems):
            picture = picture_of(files)
            downloads = downloads_of(f"bench/{name}", files, page_folder, has_picture=picture is not None, embed=embed)
            parts.append({"name": name, "table": table, "picture": picture, "downloads": downloads})
    return parts


def picture_of(files: dict[str, Path]) -> dict[str, Any] | None:
    """{uri, width, height} of the png, else of the svg; None without either."""
    for suffix in ("png", "svg"):
        if files[suffix].is_file():
            content = files[suffix].read_bytes()
            # Given the size in the png's header, the browser reserves the space before it decodes the picture.
            sized = suffix == "png" and content[12:16] == b"IHDR"
            width, height = (int.from_bytes(content[at : at + 4], "big") if sized else 0 for at in (16, 20))
            return {"uri": data_uri(content, suffix), "width": width, "height": height}
    return None


def data_uri(content: bytes, suffix: str) -> str:
    return f"data:{MIME[suffix]};base64,{base64.b64encode(content).decode()}"


def downloads_of(
    name: str, files: dict[str, Path], page_folder: Path, *, has_picture: bool, embed: bool
) -> list[dict[str, Any]]:
    """{suffix, file, url, beside} of each file; `beside`: linked, not embedded. The url of a png that the page shows is
    empty: the script takes it from the picture, so no picture is stored twice."""
    downloads = []
    for suffix, path in ((suffix, files[suffix]) for suffix in ("csv", "svg", "png") if files[suffix].is_file()):
        shown = suffix == "png" and has_picture
        beside = not shown and (not embed or (suffix != "png" and path.stat().st_size > MAX_EMBED_BYTES))
        url = "" if shown else relative_url(path, page_folder) if beside else data_uri(path.read_bytes(), suffix)
        downloads.append({"suffix": suffix, "file": f"{name}.{suffix}".replace("/", "_"), "url": url, "beside": beside})
    return downloads


def _pairs(value: object) -> list[tuple[str, str]]:
    return sorted((as_text(key), as_text(item)) for key, item in as_dict(value).items())


def _provenance(info: dict[str, Any], manifests: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The chain artefact → code and inputs → runs → data; manifests complete the runs."""
    runs: list[dict[str, str]] = []
    data: dict[str, dict[str, Any]] = {}
    for run in as_dicts(info.get("runs")):
        path = as_text(run.get("path"))
        manifest = manifests.get(path, {})
        source = as_dict(manifest.get("data"))
        kind, found = as_text(source.get("kind")), as_dict(source.get("found"))
        checksum = as_text(run.get("data_sha256") or source.get("sha256"))
        if checksum and not data.get(checksum, {}).get("name"):
            about = {"name": as_text(source.get("name")), "kind": DATA_LABELS.get(kind, kind), "sha256": checksum}
            data[checksum] = {**about, "files": _pairs(found.get("files")), "sample": found.get("complete") is False}
        named = {key: as_text(run.get(key)) for key in ("experiment", "algorithm")}
        named |= {key: as_text(manifest.get(f"{key}_sha256")) for key in ("config", "code")}
        named |= {"path": path, "commit": as_text(manifest.get("commit")), "data": checksum}
        runs.append({**named, "seconds": duration(run.get("seconds", manifest.get("seconds")))})
    return {
        "code": _pairs(info.get("code")),
        "inputs": [(as_text(item.get("path")), as_text(item.get("sha256"))) for item in as_dicts(info.get("inputs"))],
        "runs": runs,
        "data": list(data.values()),
    }
