"""GET /docs and GET /docs/{proxy+}"""

from pathlib import Path

from larder.web.documentation import File, Missing, documentation, documentation_handler
from larder.web.pages import Page

# The build of the layer writes it.
_ARCHIVE = Path(__file__).with_name("docs.zip")


def show_docs(path: str) -> Page | File | Missing:
    """Show a page of the documentation of this version, or send a file that CI copies."""
    return documentation(_ARCHIVE, path)


handler = documentation_handler(show_docs)
