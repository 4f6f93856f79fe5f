"""Needs a study's artefacts and ledger. Makes notebooks/<study>.{ipynb,html}."""


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
    conda:
        "../../envs/fedrepro.yaml"
    resources:
        mem_mb=2000,
        runtime=30,
    message:
        "execute notebook {wildcards.study}"
    script:
        "../../scripts/execute_notebook.py"
