"""Programs that keep the repository: the watch over releases, the stages of the image, the generated pages."""
