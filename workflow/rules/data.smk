"""Needs the data sets and partitions of the experiments (and real files, where available).

Makes data/<dataset>/<shard>.npz and federations/<dataset>/<partition>/<shard>.npz, each with a json file.
"""


rule prepare_data:
    """One data set: verified real files, a labelled stand-in, or synthetic data of the papers."""
    input:
        files=LAYOUT.real_files,
    output:
        data=LAYOUT.at("data/{dataset}/{shard}.npz"),
        about=LAYOUT.at("data/{dataset}/{shard}.json"),
    log:
        LAYOUT.log("prepare_data/{dataset}/{shard}"),
    benchmark:
        LAYOUT.benchmark("prepare_data/{dataset}/{shard}")
    group:
        LAYOUT.places.data
    conda:
        "../../envs/fedrepro.yaml"
    resources:
        mem_mb=lambda w, attempt: 4000 * attempt,
        runtime=30,
    params:
        code=lambda w: LAYOUT.hashed("prepare_data", LAYOUT.dataset_code(w)),
        spec=lambda w: LAYOUT.datasets[w.dataset],
        seeds=LAYOUT.data_seeds,
        mode=LAYOUT.data,
        data_dir=LAYOUT.data_dir,  # the place of the cache does not matter
    message:
        "prepare data {wildcards.dataset}"
    script:
        "../../scripts/prepare_data.py"


rule partition_data:
    """The samples of each client, for every seed of a shard, and a figure of them."""
    input:
        data=LAYOUT.dataset_file,
    output:
        federation=LAYOUT.at("federations/{dataset}/{partition}/{shard}.npz"),
        about=LAYOUT.at("federations/{dataset}/{partition}/{shard}.json"),
        picture=LAYOUT.at("federations/{dataset}/{partition}/{shard}.svg"),
    log:
        LAYOUT.log("partition_data/{dataset}/{partition}/{shard}"),
    benchmark:
        LAYOUT.benchmark("partition_data/{dataset}/{partition}/{shard}")
    group:
        LAYOUT.places.data
    conda:
        "../../envs/fedrepro.yaml"
    resources:
        mem_mb=lambda w, attempt: 4000 * attempt,
        runtime=30,
    params:
        code=lambda w: LAYOUT.hashed("partition_data", LAYOUT.partition_code(w)),
        spec=lambda w: LAYOUT.partitions[f"{w.dataset}/{w.partition}"],
        seeds=LAYOUT.data_seeds,
    message:
        "partition data {wildcards.dataset} {wildcards.partition}"
    script:
        "../../scripts/partition_data.py"
