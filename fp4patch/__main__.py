"""``python -m fp4patch`` is the command ``fp4patch``."""

from fp4patch.cli import main

if __name__ == "__main__":
    main()
