"""Tasks that succeed sometimes: p(1 - p)."""
