"""Find the tasks that are learnable now."""
