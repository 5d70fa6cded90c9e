"""Readers of build files, one for each language: what a file sets, where, under what, and for which command."""
