"""Any request that no other route takes"""

import json
from pathlib import Path

from larder.web.pages import Reply
from larder.web.unrouted import Routes, Unrouted, answer, unrouted_handler

# `make generate` writes it.
_ROUTES: Routes = json.loads(Path(__file__).with_name("routes.json").read_text(encoding="utf-8"))


def answer_unknown(request: Unrouted) -> Reply:
    """Reply 405 to a wrong method of a known path, and 404 to an unknown path."""
    return answer(request, _ROUTES)


handler = unrouted_handler(answer_unknown)
