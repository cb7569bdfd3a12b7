"""`python -m larder_proxy`, and what larder.pyz runs."""

import sys

from larder_proxy.command import main

sys.exit(main())
