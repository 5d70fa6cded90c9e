"""The whole build of vLLM on a rented machine without a network, outside a container engine."""
