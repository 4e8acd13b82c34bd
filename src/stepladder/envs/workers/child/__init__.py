"""THE WORKER'S SIDE: the process that steps its share of the envs."""
