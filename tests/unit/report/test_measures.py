"""config/studies/<study>/measures.yaml: a line for every measure that a claim's test names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fedrepro.core.study import load_studies
from fedrepro.evidence.claim_files import load_claims
from fedrepro.files import ROOT, read_yaml
from fedrepro.report.claims import explain_measures
from fedrepro.report.papers import measures_of
from tests.configs import message, write_study, write_yaml

STUDIES = load_studies(ROOT / "config")


def metrics(spec: Any) -> Iterator[str]:
    """Metrics that a claim, or a part of it, names."""
    if isinstance(spec, dict):
        yield from (value for key, value in spec.items() if key == "metric" and isinstance(value, str))
    for part in spec.values() if isinstance(spec, dict) else spec if isinstance(spec, list) else ():
        yield from metrics(part)


@pytest.mark.parametrize("study", STUDIES)
def test_every_measure_of_a_claim_is_explained_and_no_other(study):
    claims = load_claims(STUDIES[study].folder / "claims.yaml", checked=False).claims.values()
    named = {metric for claim in claims for metric in metrics(claim.spec)}
    explained = read_yaml(STUDIES[study].folder / "measures.yaml")
    assert set(explained) == named
    assert all(len(meaning) > 15 and meaning[-1] != "." for meaning in explained.values())


def test_a_claim_gets_the_meanings_of_the_names_in_its_test():
    claims = [{"study": "toy", "our_test": "a_rmse of hm1 within 0.27 ± 10 %, a_rmse again"}, {"study": "other"}]
    claims[1]["our_test"] = "a_rmse at most 1"
    explain_measures(claims, {"toy": {"a_rmse": "the error", "rmse": "another"}})
    assert [claim["measures"] for claim in claims] == [[("a_rmse", "the error")], []]


@pytest.mark.parametrize("content", [["loss"], {"loss": 3}, {"loss": ["a", "b"]}])
def test_anything_but_names_and_sentences_is_an_error_that_names_the_file(tmp_path, content):
    folder = write_study(tmp_path, "toy")
    write_yaml(folder / "measures.yaml", content)
    assert "measures.yaml" in message(measures_of, load_studies(tmp_path)["toy"])
