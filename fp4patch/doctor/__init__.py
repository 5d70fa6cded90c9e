"""Inspection of this machine, of a source tree's build, and of binaries."""
