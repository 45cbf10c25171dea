"""Where files are: folders, patterns and URLs. Nothing here reads a cell."""
