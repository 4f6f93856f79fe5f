"""Needs artefacts, the ledger and notebooks. Makes report/index.html."""


rule build_report:
    """One page that opens from the file system."""
    input:
        artefacts=[f for a in LAYOUT.chosen for f in LAYOUT.artefact_files(a)],
        ledger=[LAYOUT.at("ledger.csv")] if LAYOUT.whole_studies else [],
        notebooks=[LAYOUT.at(f"notebooks/{study}.html") for study in LAYOUT.whole_studies],
        code=LAYOUT.report_code,
    output:
        page=LAYOUT.at("report/index.html"),
    params:
        results=LAYOUT.results,
        config=str(LAYOUT.folder),
        scale=LAYOUT.scale,
        studies=sorted({a.split("/")[0] for a in LAYOUT.chosen}),
    log:
        LAYOUT.log("build_report"),
    benchmark:
        LAYOUT.benchmark("build_report")
    resources:
        mem_mb=2000,
        runtime=20,
    conda:
        "../../envs/fedrepro.yaml"
    message:
        "build report"
    script:
        "../../scripts/build_report.py"
