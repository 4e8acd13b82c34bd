"""Pictures and grids of tiles: how they are read, and the convolutions that read them."""
