"""Patches, variants and targets, read from data, and the plan that they make for a tree."""
