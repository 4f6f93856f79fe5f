"""Needs tables, config/claims and config/published. Makes ledgers/<study>.csv and ledger.csv."""


rule judge_claims:
    """A verdict for every published claim of a study, by the rule in its claims file."""
    input:
        claims=lambda w: f"{LAYOUT.folder}/claims/{w.study}.yaml",
        published=lambda w: LAYOUT.study_config(w.study, "published", "csv"),
        tables=lambda w: LAYOUT.study_tables(w.study),
        manifests=lambda w: LAYOUT.study_manifests(w.study),
        code=LAYOUT.ledger_code,
    output:
        ledger=LAYOUT.at("ledgers/{study}.csv"),
    log:
        LAYOUT.log("judge_claims/{study}"),
    benchmark:
        LAYOUT.benchmark("judge_claims/{study}")
    group:
        LAYOUT.places.results
    conda:
        "../../envs/fedrepro.yaml"
    resources:
        mem_mb=lambda w, attempt: 2000 * attempt,
        runtime=20,
    params:
        scale=LAYOUT.scale,
    message:
        "judge {wildcards.study}"
    script:
        "../../scripts/judge_claims.py"


rule merge_ledgers:
    """The verdicts of all chosen studies."""
    input:
        ledgers=[LAYOUT.at(f"ledgers/{study}.csv") for study in LAYOUT.whole_studies],
    output:
        ledger=report(LAYOUT.at("ledger.csv"), caption="../captions/ledger.rst", category="ledger"),
    log:
        LAYOUT.log("merge_ledgers"),
    benchmark:
        LAYOUT.benchmark("merge_ledgers")
    group:
        "report"
    conda:
        "../../envs/fedrepro.yaml"
    resources:
        mem_mb=1000,
        runtime=10,
    message:
        "merge ledgers"
    script:
        "../../scripts/merge_ledgers.py"
