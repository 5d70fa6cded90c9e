# 0.25.1
def _fa4_architecture_family_from_compute_capability(
    major: int,
    minor: int,
) -> FA4ArchitectureFamily:
    if (major, minor) == (9, 0):
        return "sm90"
    if (major, minor) == (12, 0):  # RTX
        return "sm120"
    raise ValueError(f"FA4 warmup does not know CUDA capability {major}.{minor}")
