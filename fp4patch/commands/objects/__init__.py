"""``fp4patch objects``: object files of a build that a patch affects."""
