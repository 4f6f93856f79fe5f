"""Needs tables and the study's published numbers. Makes artefacts/<study>/<artefact>.{csv,svg,png,json}."""


rule render_artefact:
    """A figure or table, its numbers, and its provenance down to the data's checksums."""
    input:
        tables=lambda w: LAYOUT.tables(f"{w.study}/{w.artefact}"),
        manifests=lambda w: LAYOUT.manifests(f"{w.study}/{w.artefact}"),
        samples=lambda w: LAYOUT.samples(f"{w.study}/{w.artefact}"),
        published=lambda w: LAYOUT.study_files("published.csv", w.study),
    output:
        csv=LAYOUT.at("artefacts/{study}/{artefact}.csv"),
        svg=report(
            LAYOUT.at("artefacts/{study}/{artefact}.svg"),
            caption="../captions/artefact.rst",
            category="{study}",
            labels={"artefact": "{artefact}"},
        ),
        png=LAYOUT.at("artefacts/{study}/{artefact}.png"),
        json=LAYOUT.at("artefacts/{study}/{artefact}.json"),
    log:
        LAYOUT.log("render_artefact/{study}/{artefact}"),
    benchmark:
        LAYOUT.benchmark("render_artefact/{study}/{artefact}")
    group:
        LAYOUT.places.results
    conda:
        "../../envs/fedrepro.yaml"
    resources:
        mem_mb=lambda w, attempt: 2000 * attempt,
        runtime=20,
    params:
        code=lambda w: LAYOUT.hashes("render_artefact", LAYOUT.artefact_code(f"{w.study}/{w.artefact}")),
        spec=lambda w: LAYOUT.artefacts[f"{w.study}/{w.artefact}"],
        scale=LAYOUT.scale,
    message:
        "render {wildcards.study}/{wildcards.artefact}"
    script:
        "../../scripts/render_artefact.py"
