"""Other people's patches, carried on a release: reading a stack of them, and merging it onto another release."""
