"""fp4patch: build-time source patches for NVFP4 on desktop Blackwell, each proven in the machine code."""

__version__ = "0.1.0"
