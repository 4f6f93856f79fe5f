"""Needs artefacts, the ledger, notebooks and the reference. Makes report/*.html, assumed.json, errata.json, studies.json."""


rule build_report:
    """The report, pages that open from the file system."""
    input:
        artefacts=[f for a in LAYOUT.chosen for f in LAYOUT.artefact_files(a)],
        ledger=[LAYOUT.at("ledger.csv")] if LAYOUT.ledgers else [],
        notebooks=[LAYOUT.at(f"notebooks/{name}.html") for name in LAYOUT.notebooks],
        experiments=LAYOUT.experiment_files(LAYOUT.chosen_studies),
        errata=LAYOUT.study_files("errata.yaml", *LAYOUT.chosen_studies),
        studies=LAYOUT.study_files("study.yaml", *LAYOUT.chosen_studies),
        measures=LAYOUT.study_files("measures.yaml", *LAYOUT.chosen_studies),
        reference=LAYOUT.reference_files,
    output:
        index=LAYOUT.at("report/index.html"),
        pages=[LAYOUT.at(f"report/{page}.html") for page in LAYOUT.other_pages],
        assumed=LAYOUT.at("assumed.json"),
        errata=LAYOUT.at("errata.json"),
        studies=LAYOUT.at("studies.json"),
    log:
        LAYOUT.log("build_report"),
    benchmark:
        LAYOUT.benchmark("build_report")
    group:
        "report"
    conda:
        "../../envs/fedrepro.yaml"
    resources:
        mem_mb=lambda w, attempt: 2000 * attempt,
        runtime=20,
    params:
        code=LAYOUT.hashed("build_report", LAYOUT.report_code),
        scale=LAYOUT.scale,
        folders=[str(LAYOUT.declared[study].folder) for study in LAYOUT.chosen_studies],
    message:
        "build report"
    script:
        "../../scripts/build_report.py"
