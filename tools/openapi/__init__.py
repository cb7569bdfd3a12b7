"""Generates the OpenAPI document of the API from the template, the handlers and the types that handlers use.

| In the document | From |
|---|---|
| paths and methods | template.yaml |
| summaries, operation ids | the handlers' docstrings and names |
| who can call | the principals in the handlers' signatures |
| JSON bodies of requests | the pydantic models of the dependencies |
| headers, queries and other bodies | the declarations that the dependencies name (`larder.web.declared`) |
| replies | the handlers' return types (`replies.py`), and the TypedDicts in them (`shapes.py`) |
| errors | the classes of larder.errors that handlers and the functions they call can raise (`failures.py`) |
| examples | events/ |

If the code lacks something that the document needs, the generator raises Undocumented and writes nothing.
"""


class Undocumented(Exception):
    """The generator cannot read something in the code, or a declaration is missing."""
