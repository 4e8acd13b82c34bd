"""THE COMMANDS: one short file per verb, made from typed configs."""
