"""THE SERVER: the page and its answers over HTTP; knows nothing of what runs hold."""
