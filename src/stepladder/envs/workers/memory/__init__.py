"""WHAT PARENT AND WORKERS SHARE: how memory is laid out, orders, messages, rows."""
