"""Needs the studies' artefacts and ledgers. Makes notebooks/<study>.{ipynb,html} and notebooks/overview.{ipynb,html}."""


rule execute_notebook:
    """The study's analysis, executed by papermill."""
    input:
        notebook="notebooks/{study}.ipynb",
        artefacts=lambda w: [f for a in LAYOUT.artefacts_of(w.study) for f in LAYOUT.artefact_files(a)],
        ledger=LAYOUT.at("ledgers/{study}.csv"),
        experiments=lambda w: LAYOUT.experiment_files([w.study]),
        code=LAYOUT.notebook_code,
    output:
        notebook=LAYOUT.at("notebooks/{study}.ipynb"),
        page=LAYOUT.at("notebooks/{study}.html"),
    log:
        LAYOUT.log("execute_notebook/{study}"),
    benchmark:
        LAYOUT.benchmark("execute_notebook/{study}")
    group:
        LAYOUT.places.results
    conda:
        "../../envs/fedrepro.yaml"
    resources:
        mem_mb=lambda w, attempt: 2000 * attempt,
        runtime=30,
    message:
        "execute notebook {wildcards.study}"
    script:
        "../../scripts/execute_notebook.py"


rule execute_overview:
    """All studies' verdicts beside each other, executed by papermill."""
    input:
        notebook="notebooks/overview.ipynb",
        ledger=LAYOUT.at("ledger.csv"),
        experiments=LAYOUT.experiment_files(LAYOUT.whole_studies),
        errata=LAYOUT.errata,
        code=LAYOUT.notebook_code,
    output:
        notebook=LAYOUT.at("notebooks/overview.ipynb"),
        page=LAYOUT.at("notebooks/overview.html"),
    log:
        LAYOUT.log("execute_overview"),
    benchmark:
        LAYOUT.benchmark("execute_overview")
    group:
        "report"
    conda:
        "../../envs/fedrepro.yaml"
    resources:
        mem_mb=2000,
        runtime=30,
    message:
        "execute notebook overview"
    script:
        "../../scripts/execute_overview.py"
