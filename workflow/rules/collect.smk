"""Needs the runs of an experiment. Makes tables/<study>/<experiment>.parquet."""


rule collect_metrics:
    """One tidy table per experiment, with the study's derived measures."""
    input:
        metrics=lambda w: LAYOUT.runs(w, "parquet"),
        manifests=lambda w: LAYOUT.runs(w, "json"),
    output:
        table=LAYOUT.at("tables/{study}/{experiment}.parquet"),
    log:
        LAYOUT.log("collect_metrics/{study}/{experiment}"),
    benchmark:
        LAYOUT.benchmark("collect_metrics/{study}/{experiment}")
    group:
        LAYOUT.places.training or LAYOUT.places.results
    conda:
        "../../envs/fedrepro.yaml"
    resources:
        mem_mb=lambda w, attempt: 2000 * attempt,
        runtime=20,
    params:
        code=lambda w: LAYOUT.hashed("collect_metrics", LAYOUT.measures_code(w.study)),
        divergence=LAYOUT.divergence,
    message:
        "collect {wildcards.study}/{wildcards.experiment}"
    script:
        "../../scripts/collect_metrics.py"
