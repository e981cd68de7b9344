"""`python -m hcmodel` is the command `hcmodel`."""

import sys

from hcmodel.cli import main

if __name__ == "__main__":
    sys.exit(main())
