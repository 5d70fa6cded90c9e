"""The command ``fp4patch``, also as ``python -m fp4patch``."""

from fp4patch.cli import main

if __name__ == "__main__":
    main()
