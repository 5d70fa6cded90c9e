"""The command line: one package for each command, and what they share."""
