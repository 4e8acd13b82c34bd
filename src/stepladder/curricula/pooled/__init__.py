"""What tasks of a kind say about each other: a part that several methods share.

`cells` says which tasks are of a kind (by labels, and bins of `features`), `pooling` estimates a
task from the others of its cell, `stuck` notices what no practice changes, and `labels` is how a
method holds all of it.
"""
