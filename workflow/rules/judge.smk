"""Needs tables, and the studies' claims and published numbers. Makes ledgers/<study>.csv with its readings, headlines and
numbers, and ledger.csv, readings.csv and headlines.csv of all studies."""


rule judge_claims:
    """One verdict per published claim of a study, or per claim that rests on one artefact."""
    input:
        unpack(LAYOUT.judging),
    output:
        **LAYOUT.judged,
    log:
        LAYOUT.log("judge_claims/{ledger}"),
    benchmark:
        LAYOUT.benchmark("judge_claims/{ledger}")
    group:
        lambda w: LAYOUT.places.results.format(study=w.ledger.split("/")[0])
    conda:
        "../../envs/fedrepro.yaml"
    resources:
        mem_mb=lambda w, attempt: 2000 * attempt,
        runtime=20,
    params:
        code=LAYOUT.hashed("judge_claims", LAYOUT.ledger_code),
        config=str(LAYOUT.folder),
        scale=LAYOUT.scale,
        asked=LAYOUT.asked_claims,
        results=lambda w: LAYOUT.results,
    message:
        "judge {wildcards.ledger}"
    script:
        "../../scripts/judge_claims.py"


rule merge_ledgers:
    """All verdicts of the run in one ledger, beside their readings and headlines."""
    input:
        ledgers=LAYOUT.ledgers,
    output:
        ledger=report(LAYOUT.at("ledger.csv"), caption="../captions/ledger.rst", category="ledger"),
        readings=LAYOUT.at("readings.csv"),
        headlines=LAYOUT.at("headlines.csv"),
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
