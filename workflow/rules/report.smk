"""Needs artefacts, the ledger and notebooks. Makes report/index.html."""


rule build_report:
    """One page that opens from the file system."""
    input:
        artefacts=[f for a in LAYOUT.chosen for f in LAYOUT.artefact_files(a)],
        ledger=[LAYOUT.at("ledger.csv")] if LAYOUT.whole_studies else [],
        notebooks=[LAYOUT.at(f"notebooks/{name}.html") for name in LAYOUT.notebooks],
        experiments=LAYOUT.experiment_files(LAYOUT.chosen_studies),
        errata=LAYOUT.errata,
        code=LAYOUT.report_code,
    output:
        page=LAYOUT.at("report/index.html"),
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
        scale=LAYOUT.scale,
        studies=LAYOUT.chosen_studies,
    message:
        "build report"
    script:
        "../../scripts/build_report.py"
