"""The figures and tables on the page, and those of the bench: picture or rows, downloads, provenance."""

import json
import math
from pathlib import Path
from typing import Any

from fedrepro.core.checksums import check
from fedrepro.errors import Damaged
from fedrepro.report.formats import DATA_LABELS, as_float, as_text, data_labels, duration, natural
from fedrepro.report.gather import as_dict, as_dicts, read, relative_url, table_of

DRAWN_DPI, SHOWN_DPI = 160, 110  # pixels per inch of a figure: of its png file, and on the page
NARROW = 620  # the widest picture, in pixels on the page, that shares a row with another
#: files of `make bench`, in the order of the page, whose titles are in page_speed.html.j2
SPEED = ("engine", "growth", "workflow", "gp", "gp_growth", "linear", "data")


def read_artefacts(
    results: Path, page_folder: Path, manifests: dict[str, dict[str, Any]], problems: list[str]
) -> list[dict[str, Any]]:
    """Every artefact with picture or table, downloads and provenance; the paper's own first, in its order."""
    artefacts = []
    for path in sorted(results.glob("artefacts/*/*.json")):
        info = read(path, results, json.loads, problems)
        if not isinstance(info, dict):
            continue
        name = f"{path.parent.name}/{path.stem}"
        kind = "table" if info.get("kind") == "table" else "figure"
        texts = {key: as_text(info.get(key)) for key in ("title", "caption", "source", "scale", "seeds", "alt")}
        files = {suffix: path.with_suffix(f".{suffix}") for suffix in ("csv", "svg", "png")}
        try:
            for file in filter(Path.is_file, files.values()):
                check(file)
        except Damaged as error:
            problems.append(str(error))
            continue
        title = texts["title"] or name
        picture = picture_of(files, page_folder) if kind == "figure" else None
        data = info.get("data")
        kinds = data if isinstance(data, list) else [data]
        shown = {
            **texts,
            "id": name,
            "study": path.parent.name,
            "title": title,
            "alt": " ".join(filter(None, [f"{title}.", texts["alt"] or texts["caption"]])),
            "kind": kind,
            "added": texts["source"] == "added",
            "data": data_labels(kinds),
            "mark": "stand-in data" if "standin" in kinds else "",
            "diverged": int(as_float(info.get("diverged"))),
            "picture": picture,
            "broad": kind == "table" or (picture is not None and picture["width"] > NARROW),
            "table": table_of(files["csv"], results, problems) if kind == "table" else None,
            "downloads": downloads_of(files, page_folder),
            "provenance": _provenance(info, manifests),
            "claims": [],
        }
        artefacts.append(shown)
    return sorted(artefacts, key=lambda item: (item["added"], natural(item["id"])))


def read_speed(results: Path, page_folder: Path, problems: list[str]) -> list[dict[str, Any]]:
    """The bench in the results folder, else in the folder above, where `make bench` writes."""
    folder = next((f for f in (results / "bench", results.parent / "bench") if f.is_dir()), None)
    if folder is None:
        return []
    parts = []
    for name in SPEED:
        files = {suffix: folder / f"{name}.{suffix}" for suffix in ("csv", "svg", "png")}
        if table := table_of(files["csv"], folder.parent, problems):
            shown = {"picture": picture_of(files, page_folder), "downloads": downloads_of(files, page_folder)}
            parts.append({"name": name, "table": table, **shown})
    return parts


def picture_of(files: dict[str, Path], page_folder: Path) -> dict[str, Any] | None:
    """{url, width, height} of the png, else of the svg; None without either. The size is that on the page: the browser
    reserves the space before it loads the picture. 0 where it is unknown."""
    for suffix in ("png", "svg"):
        if files[suffix].is_file():
            with files[suffix].open("rb") as file:
                head = file.read(24)
            # A png has its size in its header; we draw DRAWN_DPI pixels per inch.
            sized = suffix == "png" and head[12:16] == b"IHDR"
            pixels = [int.from_bytes(head[at : at + 4], "big") if sized else 0 for at in (16, 20)]
            width, height = (math.ceil(SHOWN_DPI / DRAWN_DPI * size) for size in pixels)
            return {"url": relative_url(files[suffix], page_folder), "width": width, "height": height}
    return None


def downloads_of(files: dict[str, Path], page_folder: Path) -> list[dict[str, str]]:
    """{suffix, url} of each file that exists."""
    found = ((suffix, files[suffix]) for suffix in ("csv", "svg", "png") if files[suffix].is_file())
    return [{"suffix": suffix, "url": relative_url(path, page_folder)} for suffix, path in found]


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
