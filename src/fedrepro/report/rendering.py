"""An artefact's files: picture, numbers and provenance."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from fedrepro.core import parts
from fedrepro.data.dataset import load
from fedrepro.evidence.tables import RUN, Tables, read_printed
from fedrepro.files import read_json, sha256, write_atomically, write_json
from fedrepro.report import plotting

Spec = dict[str, Any]
Frames = Mapping[str, pd.DataFrame]
Paths = Sequence[Path]


def render_artefact(
    spec: Spec,
    scale: str,
    tables: Paths,
    manifests: Paths,
    samples: Paths,
    published: Path | None,
    code: Mapping[str, str],
    out: Path,
) -> None:
    """Write `out`.csv, .svg, .png and .json, in results/<scale>/artefacts/<study>/. The drawing function gets `Tables`:
    the experiments' tables, the declared samples, and the printed numbers."""
    study, name = spec["id"].split("/")
    draw = getattr(importlib.import_module(parts.artefact_module(study, name)), name)
    frames = {path.stem: pd.read_parquet(path) for path in tables}
    shown = {f"{n}.data": _samples(path) for n, path in zip(spec.get("data", []), samples, strict=True)}
    drawn = draw(Tables(frames | shown, read_printed(published) if published else {}))
    picture, numbers = drawn if spec["kind"] == "figure" else (plotting.table_figure(drawn, spec["title"]), drawn)
    plotting.say_scale(picture, scale)
    if mark := stamp_of(frames | shown):
        plotting.stamp(picture, mark)
    for kind in ("svg", "png"):
        write_atomically(out.with_suffix(f".{kind}"), plotting.save(picture, kind))
    write_atomically(out.with_suffix(".csv"), numbers.to_csv(index=False))
    about = provenance_of(spec, scale, frames, [*tables, *samples], manifests, code, out.parents[2])
    about["data"] = sorted(set().union(*map(_kinds, (frames | shown).values()))) or ["schematic"]
    seen = {"alt": plotting.describe(picture)} if spec["kind"] == "figure" else {}
    write_json(out.with_suffix(".json"), about | seen | ({"stamp": mark} if mark else {}))


def stamp_of(frames: Frames) -> str:
    """The text that marks a picture of stand-in data, with the tables in question where not all of them are; else
    nothing."""
    made_up = [name for name, frame in frames.items() if "standin" in _kinds(frame)]
    if not made_up:
        return ""
    named = ", ".join(name.removesuffix(".data") for name in made_up)
    return "stand-in data" + ("" if len(made_up) == len(frames) else f": {named}")


def _samples(path: Path) -> pd.DataFrame:
    """The training samples of the first seed: columns x0, x1, … (flattened), y, client, group, seed."""
    seed, data = min(load(path).items())
    x = data.train.samples().reshape(len(data.train), -1)
    columns = {f"x{j}": x[:, j] for j in range(x.shape[1])} | {"y": data.train.y}
    marks = {k: v for k in ("client", "group") if (v := getattr(data.train, k)) is not None}
    frame = pd.DataFrame({**columns, **marks, "seed": max(seed, 0)})
    frame.attrs["data"] = data.kind
    return frame


def _kinds(frame: pd.DataFrame) -> set[str]:
    """The kinds of data behind a table of results or of samples."""
    return {frame.attrs["data"]} if "data" in frame.attrs else set(frame["data"].unique())


def provenance_of(
    spec: Spec, scale: str, frames: Frames, inputs: Paths, manifests: Paths, code: Mapping[str, str], root: Path
) -> dict[str, Any]:
    """What the artefact shows and what it was made from, down to the data's checksums."""
    runs = []
    for path in manifests:
        run = read_json(path)
        kept = ("experiment", "algorithm", "shard", "seconds", "commit", "code_sha256", "federation_sha256")
        data = {"data": run["data"]["name"], "data_kind": run["data"]["kind"], "data_sha256": run["data"]["sha256"]}
        files = {"path": str(path.relative_to(root)), "sha256": sha256(path.with_suffix(".parquet"))}
        runs.append({**{key: run[key] for key in kept}, **data, **files})
    all_rows = pd.concat(frames.values()) if frames else pd.DataFrame(columns=["data", "seed", "diverged"])
    diverged = all_rows.loc[all_rows["diverged"].astype(bool)]
    return {
        "artefact": spec["id"],
        **{k: spec[k] for k in ("study", "title", "caption", "kind", "source")},
        "scale": scale,
        "seeds": int(all_rows["seed"].nunique()),
        "diverged": len(diverged.drop_duplicates(["experiment", *RUN])) if len(diverged) else 0,
        "code": dict(code),
        "inputs": [{"path": str(p.relative_to(root)), "sha256": sha256(p)} for p in inputs],
        "runs": runs,
    }
