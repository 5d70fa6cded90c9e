"""Execute the machine code of FP4 conversions on the host, and compare it with the specification and with upstream."""
