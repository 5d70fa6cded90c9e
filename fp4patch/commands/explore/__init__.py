"""``fp4patch explore``: one page with doctor's answers for every release, CUDA release, arch list and GPU."""
