"""Needs the studies' artefacts and ledgers. Makes notebooks/<study>.{ipynb,html} and notebooks/overview.{ipynb,html}."""


rule execute_notebook:
    """A study's analysis, or the overview of all studies, executed by papermill."""
    input:
        unpack(LAYOUT.notebook_inputs),
    output:
        notebook=LAYOUT.at("notebooks/{notebook}.ipynb"),
        page=LAYOUT.at("notebooks/{notebook}.html"),
    log:
        LAYOUT.log("execute_notebook/{notebook}"),
    benchmark:
        LAYOUT.benchmark("execute_notebook/{notebook}")
    group:
        lambda w: "report" if w.notebook == "overview" else LAYOUT.places.results.format(study=w.notebook)
    conda:
        "../../envs/fedrepro.yaml"
    resources:
        mem_mb=lambda w, attempt: 2000 * attempt,
        runtime=30,
    params:
        code=LAYOUT.hashed("execute_notebook", LAYOUT.notebook_code),
    message:
        "execute notebook {wildcards.notebook}"
    script:
        "../../scripts/execute_notebook.py"
