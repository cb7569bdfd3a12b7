"""These tests need the emulator: `make rehearsal` and `make permissions` run them."""

import os

from tests.rehearsal.acting import ROLES

collect_ignore_glob = [] if os.environ.get("ENGINE") == ROLES else ["test_*.py"]
