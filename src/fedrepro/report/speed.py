"""Speed: the tables and figures of the last `make bench`."""

from pathlib import Path
from typing import Any

from fedrepro.report.artefacts import downloads_of, picture_of, table_of
from fedrepro.report.formats import MIME

#: file of the bench → (title, caption)
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
    "gp_growth": ("What a round of Gaussian processes costs as devices become many", "Time of the processor."),
    "linear": ("Linear models at their published size", ""),
    "data": ("Reading and making the data", ""),
}


def read_speed(results: Path, page_folder: Path, problems: list[str], *, embed: bool) -> list[dict[str, Any]]:
    """The bench in the results folder, else in the folder above, where `make bench` writes."""
    folder = next((f for f in (results / "bench", results.parent / "bench") if f.is_dir()), None)
    if folder is None:
        return []
    parts = []
    for name, (title, caption) in PARTS.items():
        files = {suffix: folder / f"{name}.{suffix}" for suffix in MIME}
        if table := table_of(files["csv"], folder.parent, problems):
            picture = picture_of(files)
            downloads = downloads_of(f"bench/{name}", files, page_folder, has_picture=picture is not None, embed=embed)
            texts = {"title": title, "caption": caption}
            parts.append({**texts, "table": table, "picture": picture, "downloads": downloads})
    return parts
