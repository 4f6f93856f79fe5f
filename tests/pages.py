"""A results folder with one of everything, for the tests of the page."""

from __future__ import annotations

import base64
import csv
import json
from pathlib import Path

from fedrepro.evidence.ledger import COLUMNS
from fedrepro.report.claims import VERDICTS

HOSTILE = "</script></style><script>alert('x')</script><img src=x onerror=alert(1)>\"'><b>&amp;"
# one transparent pixel
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert("svg")</script></svg>'
SHA = "ab" * 32


def write_ledger(results: Path, rows: list[dict]) -> None:
    results.mkdir(parents=True, exist_ok=True)
    with (results / "ledger.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows({key: "" for key in COLUMNS} | row for row in rows)


def write_artefact(results: Path, name: str, *, rows: int = 3, **info: object) -> None:
    path = results / "artefacts" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    defaults = {
        "artefact": name,
        "title": f"Title of {name}",
        "caption": f"Caption of {name}",
        "kind": "figure",
    }
    defaults |= {"source": "Fig. 3", "scale": "demo", "data": ["synthetic"], "seeds": 5, "diverged": 0}
    path.write_text(json.dumps(defaults | info), encoding="utf-8")
    lines = ["row,value", *(f"row {line},{line / 7!r}" for line in range(rows))]
    path.with_suffix(".csv").write_text("\n".join(lines), encoding="utf-8")
    path.with_suffix(".png").write_bytes(PNG)
    path.with_suffix(".svg").write_text(SVG, encoding="utf-8")


def write_manifest(results: Path, path: str, **entries: object) -> None:
    target = results / path
    target.parent.mkdir(parents=True, exist_ok=True)
    _, study, experiment, algorithm, _ = path.split("/")
    manifest = {
        "experiment": f"{study}/{experiment}",
        "algorithm": algorithm,
        "seeds": [0, 1],
        "seconds": 200.0,
    }
    manifest |= {"data": {"name": "line", "kind": "synthetic", "sha256": SHA}, "commit": "c0ffee" * 6}
    manifest |= {
        "peak_memory_mb": 512.0,
        "strategy": "vmap",
        "gradient_steps": 12345,
        "diverged": [],
    }
    manifest |= {"machine": {"cpu": "Tiny CPU", "cores": 2, "memory_gb": 8, "system": "Linux"}}
    target.write_text(json.dumps(manifest | entries), encoding="utf-8")


def write_results(folder: Path) -> Path:
    """Claims of every verdict, figures, a table, runs, a failure; some of it hostile."""
    rows = [
        {"claim": f"toy/claim_{at}", "study": "toy", "source": "§IV, Fig. 3", "statement": f"Statement {at}."}
        | {
            "published": "160",
            "ours": "158.123456789",
            "ci_low": "150.5",
            "ci_high": "166.25",
            "verdict": verdict,
        }
        | {"reason": f"Reason {at}.", "data": "synthetic", "scale": "demo", "seeds": "5"}
        for at, verdict in enumerate(VERDICTS)
    ]
    rows.append({"claim": "other/spread", "study": "other", "statement": HOSTILE, "source": HOSTILE})
    rows[-1] |= {"published": HOSTILE, "reason": HOSTILE, "verdict": "not tested", "data": "standin"}
    write_ledger(folder, rows)
    run = {"path": "runs/toy/line/toy/0.json", "experiment": "toy/line", "algorithm": "toy", "seconds": 200.0}
    write_artefact(
        folder,
        "toy/fig3",
        runs=[run | {"data_sha256": SHA}],
        inputs=[{"path": "tables/toy/line.parquet", "sha256": "cd" * 32}],
        code={"fedrepro/artefacts/toy.py": "ef" * 32},
    )
    write_artefact(folder, "toy/theorem1", source="added")
    write_artefact(folder, "other/table2_2", kind="table", source="Table 2.2", data=["real", "standin"])
    write_artefact(folder, "other/fig2_3", title=HOSTILE, caption=HOSTILE, source=HOSTILE, data=[HOSTILE])
    write_manifest(folder, "runs/toy/line/toy/0.json", diverged=[{"setting": "gamma=0.5", "seed": 1, "round": 17}])
    (folder / "notebooks").mkdir()
    (folder / "notebooks" / "toy.html").write_text("notebook")
    (folder / "assumed.json").write_text(
        json.dumps(
            [
                {
                    "study": "toy",
                    "key": "batch_size",
                    "value": 20,
                    "reason": HOSTILE,
                    "shown": "toy/theorem1, third/nowhere",
                }
            ]
        )
    )
    (folder / "errata.json").write_text(
        json.dumps([{"study": "other", "place": "Table 2.2", "statement": "0.811", "reason": "the text says 0.801"}])
    )
    failure = {
        "rule": "train",
        "wildcards": {"experiment": "toy/ring"},
        "log_tail": "RuntimeError: " + HOSTILE,
    }
    (folder / "failures.json").write_text(json.dumps([failure]))
    return folder
