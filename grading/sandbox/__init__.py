"""Where what students hand in is run: in processes and roles that can reach nothing else."""
