"""Edit operations, one file for each, and the lexers that find their anchors."""
