"""A list of phases, each a mixture of tasks or a curriculum of its own."""
