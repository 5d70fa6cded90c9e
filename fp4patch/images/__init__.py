"""How it ships: the patched vLLM as an image with its proof inside, by the container engine that is there."""
