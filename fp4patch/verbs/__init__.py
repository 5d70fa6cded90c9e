"""One module a verb of the command line: each takes parsed arguments and returns values; none prints."""
