"""Images of the patched vLLM with the proof inside, built by the installed container engine."""
