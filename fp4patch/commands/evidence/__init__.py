"""``fp4patch evidence``: proofs for upstream, and a program that owners of a GPU run."""
