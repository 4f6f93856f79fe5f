"""Needs a data file and a federation file. Makes runs/<study>/<experiment>/<algorithm>/<shard>.{parquet,json}.

Checkpoints are not outputs, because snakemake would delete them before a retry. A job finds its own by the hash of its
config, code and data.
"""


rule train_algorithm:
    """Train one algorithm on one experiment for one shard of the seeds; the only rule that uses a GPU."""
    input:
        unpack(LAYOUT.training_data),
    output:
        metrics=LAYOUT.at("runs/{study}/{experiment}/{algorithm}/{shard}.parquet"),
        manifest=LAYOUT.at("runs/{study}/{experiment}/{algorithm}/{shard}.json"),
    log:
        LAYOUT.log("train_algorithm/{study}/{experiment}/{algorithm}/{shard}"),
    benchmark:
        LAYOUT.benchmark("train_algorithm/{study}/{experiment}/{algorithm}/{shard}")
    priority: LAYOUT.priority
    group:
        LAYOUT.places.training
    conda:
        "../../envs/fedrepro.yaml"
    threads: 1
    resources:
        gpu=LAYOUT.gpus_per_job,
        mem_mb=lambda w, attempt: 4000 * attempt,
        runtime=LAYOUT.places.training_minutes,
    params:
        code=lambda w: LAYOUT.hashed("train_algorithm", LAYOUT.training_code(w)),
        settings=lambda w: LAYOUT.experiment(w).job_sha256(w.algorithm),
        config=LAYOUT.config_folder,
        scale=LAYOUT.scale,
        device=LAYOUT.device,
        strategy=LAYOUT.strategy,
        checkpoints=LAYOUT.at("checkpoints"),
    message:
        "train {wildcards.algorithm} on {wildcards.study}/{wildcards.experiment}, seeds {wildcards.shard}"
    script:
        "../../scripts/train_algorithm.py"
