"""fedrepro: from data to a report with one verdict per claim. `make` lists the commands."""

from snakemake.utils import min_version

min_version("9.27")


include: "workflow/rules/common.smk"
include: "workflow/rules/hooks.smk"
include: "workflow/rules/data.smk"
include: "workflow/rules/train.smk"
include: "workflow/rules/collect.smk"
include: "workflow/rules/render.smk"
include: "workflow/rules/judge.smk"
include: "workflow/rules/notebook.smk"
include: "workflow/rules/report.smk"


rule all:
    """The studies and artefacts of config.only (default: all), and the report."""
    default_target: True
    input:
        [LAYOUT.artefact_files(a) for a in LAYOUT.chosen],
        rules.build_report.output,


for target, files in LAYOUT.targets().items():

    rule:
        """A study (`snakemake STUDY`), or an artefact with its verdicts (`snakemake STUDY/ARTEFACT`)."""
        name:
            target
        input:
            files,
