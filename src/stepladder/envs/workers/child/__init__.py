"""THE WORKER'S SIDE: the process that steps some of the envs."""
