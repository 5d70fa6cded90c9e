"""Contents of compiled code: files, device code, instructions, and the code that a GPU's driver loads."""
