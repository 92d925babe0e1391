# Averages the hits of a point, and scales them as settings.txt says.
with open(snakemake.input.hits, "rb") as file:
    hits = file.read()
with open(snakemake.input.settings) as settings:
    scale = int(settings.read())
with open(snakemake.output[0], "w") as fit:
    print(snakemake.wildcards.point, scale * sum(hits) // len(hits), file=fit)
