"""hosts.toml, run profiles, settings and paths: text becomes values here and nowhere else."""
