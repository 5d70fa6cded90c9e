"""Readers of build files, one for each language: which settings a file has, where, under what, and for which command."""
