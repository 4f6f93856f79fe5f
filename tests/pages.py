"""A results folder with one of everything, for the tests of the page."""

from __future__ import annotations

import base64
import csv
import io
import json
from pathlib import Path

from PIL import Image

from fedrepro.report.claims import VERDICTS

LEDGER = (
    *("claim", "study", "origin", "source", "kind", "family", "statement", "paper_says", "our_test", "ours"),
    *("ci_low", "ci_high", "p", "p_holm", "p_flip", "p_printed", "verdict", "reason", "hint", "evidence", "data"),
    *("scale", "seeds", "reading", "next"),
)
HEADLINES = (
    *("headline", "study", "main", "quote", "place", "says", "rule", "claims", "n", "reproduced", "direction"),
    *("not_reproduced", "undecided", "not_tested", "verdict", "reason"),
)
NUMBERS = ("claim", "reading", "quantity", "seed", "value", "diverged")
HOSTILE = "</script></style><script>alert('x')</script><img src=x onerror=alert(1)>\"'><b>&amp;"
# one transparent pixel
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert("svg")</script></svg>'
SHA = "ab" * 32
CAPTION = "A sentence about what is drawn, and how. " * 4


def write_rows(path: Path, columns: tuple[str, ...], rows: list[dict]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(rows)


def blank(width: int, height: int) -> bytes:
    """A white png."""
    file = io.BytesIO()
    Image.new("L", (width, height), 255).save(file, "png")
    return file.getvalue()


def write_ledger(results: Path, rows: list[dict]) -> None:
    write_rows(results / "ledger.csv", LEDGER, [{"origin": "paper"} | row for row in rows])


def write_artefact(results: Path, name: str, *, rows: int = 3, png: bytes = PNG, **info: object) -> None:
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
    path.with_suffix(".png").write_bytes(png)
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


def write_papers_file(folder: Path) -> None:
    """studies.json: one paper with everything, one that is hostile."""
    data = [{"name": "digits", "title": "Digits", "megabytes": 31.4, "manual": False}]
    data += [{"name": "letters", "title": "Letters", "megabytes": 0, "manual": True}]
    toy = {"study": "toy", "title": "Toys that agree", "authors": ["Ann", "Bo"], "venue": "Toys 2020", "main": "first"}
    toy |= {"link": "https://example.org/toys", "key_artefact": "fig3", "data": data}
    other = {"study": "other", "title": HOSTILE, "authors": [HOSTILE], "venue": HOSTILE, "link": "javascript:alert(1)"}
    (folder / "studies.json").write_text(json.dumps([toy, other | {"data": data}]))


def write_reference(folder: Path, results: Path, **changes: str) -> Path:
    """A reference with the verdicts of `results`, except claims whose id is in `changes`: their new verdicts. Headlines
    named `headline_<name>` likewise. All of it at paper scale."""
    for name, key in (("ledger", "claim"), ("headlines", "headline")):
        with (results / f"{name}.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        for row in rows:
            if "scale" in row:
                row["scale"] = "paper"
            own = row[key].rpartition("/")[2]
            row["verdict"] = changes.get(own if key == "claim" else f"headline_{own}", row["verdict"])
        write_rows(folder / f"{name}.csv", tuple(rows[0]), rows)
    write_manifest(folder, "runs/toy/line/toy/0.json", seconds=7500.0)
    return folder


def write_many(folder: Path, *, studies: int = 7, claims: int = 145, artefacts: int = 14) -> Path:
    """A results folder as large as all papers together: every study has headlines, claims with readings, pictures."""
    ledger, readings, headlines, papers = [], [], [], []
    shapes = [blank(1120, 450), blank(1504, 900), blank(800, 600)]  # one row of panels, two rows, a single panel
    verdicts = list(VERDICTS)
    for at in range(studies):
        study = f"study{at}"
        for number in range(claims):
            row = {
                "claim": f"{study}/c{number}",
                "study": study,
                "origin": "paper",
                "source": "Fig. 3",
                "kind": "value",
            }
            row |= {"statement": f"In case {number} the error of the method is the printed one.", "ours": "0.31 ± 0.1"}
            row |= {"paper_says": "0.25 ± 0.01 (30 runs)", "our_test": "error of method within 0.25 ± 10 %"}
            row |= {"ci_low": "0.29", "ci_high": "0.33", "p": "0.001", "verdict": verdicts[number % 6], "seeds": "30"}
            row |= {"reason": "mean 0.31, 95 % interval 0.29 to 0.33 over 30 seeds: outside 0.25 ± 0.025"}
            row |= {"evidence": "published settings", "data": "real", "scale": "paper", "reading": ""}
            ledger.append(row)
            readings += [row | {"reading": "training range"}] * (number % 3)
        for number in range(8):
            named = " ".join(f"c{n}" for n in range(8 * number, 8 * number + 8))
            headline = {"headline": f"h{number}", "study": study, "main": number == 0, "place": "Abstract"}
            headline |= {"quote": "the proposed algorithm is better than the others", "says": "It is better."}
            headline |= {"rule": "most", "claims": named, "n": 8, "verdict": verdicts[number % 6]}
            headlines.append(headline | {"reason": "of 8 claims: 5 reproduced, 3 not reproduced"})
        for number in range(artefacts):
            kind = "table" if number % 3 == 2 else "figure"
            write_artefact(
                folder, f"{study}/a{number}", kind=kind, rows=40, png=shapes[number // 3 % 3], caption=CAPTION
            )
        paper = {"study": study, "title": f"A paper about {study}", "authors": ["Ann"], "venue": "Toys 2020"}
        papers.append(paper | {"link": f"https://example.org/{study}", "key_artefact": "a0", "data": []})
    write_rows(folder / "ledger.csv", LEDGER, ledger)
    write_rows(folder / "readings.csv", LEDGER, readings)
    write_rows(folder / "headlines.csv", HEADLINES, headlines)
    (folder / "studies.json").write_text(json.dumps(papers))
    return folder


def write_results(folder: Path) -> Path:
    """Claims of every verdict and origin, with readings, headlines, figures, a table, runs, a failure; some of it
    hostile."""
    row = {"study": "toy", "origin": "paper", "source": "§IV, Fig. 3", "kind": "value", "family": "fig3"}
    row |= {"paper_says": "160 ± 2 (30 runs)", "our_test": "within 5 of the printed 160", "ours": "158.123456789"}
    row |= {"ci_low": "150.5", "ci_high": "166.25", "p": "0.00312", "p_holm": "0.0125", "p_flip": "0.03125"}
    row |= {"data": "synthetic", "scale": "demo", "seeds": "5", "evidence": "published settings"}
    rows = [
        row
        | {"claim": f"toy/claim_{at}", "statement": f"Statement {at}.", "reason": f"Reason {at}.", "verdict": verdict}
        for at, verdict in enumerate(VERDICTS)
    ]
    rows[0]["reading"] = "flips: the sum → not reproduced"
    rows[3]["next"] = "12 more seeds, about 3 min"
    rows[5] |= {"hint": "points to not reproduced: p 0.003", "evidence": "reduced: rounds 20 of 100"}
    rows += [
        row | {"claim": "toy/adds_up", "origin": "printed", "statement": "It adds up.", "paper_says": "", "ours": "3"}
        | {"verdict": "contradicted by the source", "reason": "3 ≠ 2", "data": "published", "p": "", "p_holm": ""}
        | {"source": "Table 9", "seeds": "0", "evidence": "printed numbers", "p_flip": ""},
        row | {"claim": "toy/control", "origin": "added", "statement": "A control.", "verdict": "reproduced"}
        | {"source": "added", "reason": "As it should."},
    ]  # fmt: skip
    rows.append({"claim": "other/spread", "study": "other", "origin": "paper", "statement": HOSTILE, "source": HOSTILE})
    rows[-1] |= {"paper_says": HOSTILE * 2, "our_test": HOSTILE, "reason": HOSTILE, "hint": HOSTILE, "next": HOSTILE}
    rows[-1] |= {"verdict": "not tested", "data": "standin", "evidence": HOSTILE, "reading": HOSTILE}
    write_ledger(folder, rows)
    reading = row | {"claim": "toy/claim_0", "ours": "99", "verdict": "not reproduced", "reason": "Not as a sum."}
    others = [reading | {"reading": "the sum"}, rows[-1] | {"reading": HOSTILE}]
    write_rows(folder / "readings.csv", LEDGER, others)
    headline = {"study": "toy", "place": "Abstract", "rule": "all", "reason": "One of three fails."}
    headline |= {"n": 3, "direction": 0, "not_tested": 0}
    headlines = [
        headline | {"headline": "second", "main": False, "quote": "It is small.", "says": "Small.", "claims": "claim_3"}
        | {"verdict": "undecided", "undecided": 1, "reproduced": 0, "not_reproduced": 0},
        headline | {"headline": "first", "main": True, "quote": "It is so.", "says": "So.", "verdict": "not reproduced"}
        | {"claims": "toy/claim_0 toy/claim_2 toy/claim_3", "reproduced": 1, "not_reproduced": 1, "undecided": 1},
        {"headline": "only", "study": "other", "main": True, "quote": HOSTILE, "place": HOSTILE, "says": HOSTILE}
        | {"claims": "other/spread", "reason": HOSTILE, "verdict": "not tested", "not_tested": 1},
    ]  # fmt: skip
    write_rows(folder / "headlines.csv", HEADLINES, headlines)
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
    write_papers_file(folder)
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
        json.dumps(
            [
                {"study": "toy", "place": "Table 9", "printed": "2", "should_be": "3", "severity": "computed"},
                {"study": "toy", "place": "eq. (1)", "printed": "N", "should_be": "L", "severity": "slip", "how": "§2"},
                {"study": "other", "place": "Table 2.2", "printed": "0.811", "should_be": "0.801"}
                | {"severity": "breaks", "how": "the text says 0.801"},
            ]
        )
    )
    failure = {
        "rule": "train",
        "wildcards": {"experiment": "toy/ring"},
        "log_tail": "RuntimeError: " + HOSTILE,
    }
    (folder / "failures.json").write_text(json.dumps([failure]))
    return folder
