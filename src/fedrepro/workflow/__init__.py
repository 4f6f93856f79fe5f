"""What the Snakemake workflow calls: where files are, what a job needs, and the jobs themselves."""
