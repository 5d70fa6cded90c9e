"""One module for each generated page or picture; ``python -m tools.regenerate`` runs them."""
