"""How fast it is: the last `make bench`, from its folder."""

from __future__ import annotations

from pathlib import Path

from fedrepro.report.artefacts import downloads_of, picture_of, table_of
from fedrepro.report.formats import MIME

#: file of the bench → what it is
PARTS = {
    "engine": (
        "A round beside other simulators and bare code",
        "ratio: a system's time over that of the engine with its better strategy; not_gradients: the share of a round "
        "that bare code does without; apart: the largest difference of a parameter from the bare loop's after some "
        "rounds, in single and in double precision; of the bare loop, from itself in double precision.",
    ),
    "growth": (
        "What a round costs as clients become many",
        "Time of the processor; memory of a client beyond its samples and labels.",
    ),
    "workflow": (
        "Where the time of a run goes",
        "Seconds of all jobs of a rule, and their share of the time of all cores from the first job's start to the "
        "last one's end; of training also what its rounds take alone.",
    ),
    "gp": ("Gaussian processes, all runs at once, beside one gpytorch model at a time", ""),
    "linear": ("Linear models at their published size", ""),
    "data": ("Reading and making the data", ""),
}


def read_speed(results: Path, page_folder: Path, problems: list[str], *, embed: bool) -> list[dict]:
    """What is there of the bench: beside the studies' results, or in the folder above, where `make bench` writes."""
    folder = next((f for f in (results / "bench", results.parent / "bench") if f.is_dir()), None)
    parts = []
    for name, (title, caption) in PARTS.items() if folder else ():
        files = {suffix: folder / f"{name}.{suffix}" for suffix in MIME}
        table, picture = table_of(files["csv"], folder.parent, problems), picture_of(files)
        if table:
            downloads = downloads_of(f"bench/{name}", files, page_folder, has_picture=picture is not None, embed=embed)
            parts.append(
                {"title": title, "caption": caption, "table": table, "picture": picture, "downloads": downloads}
            )
    return parts
