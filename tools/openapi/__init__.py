"""Makes the OpenAPI document of the whole API out of the template, the handlers and what these name.

| What stands in it | Where it comes from |
|---|---|
| paths and methods | template.yaml |
| summaries, operation ids | the handlers' docstrings and names |
| who may call | the caller types in the handlers' signatures |
| JSON bodies of requests | the pydantic models that the dependencies parse with |
| headers, queries, bodies that are parsed by hand | `requests.py`, of the parsers' own patterns and limits |
| replies | what the handlers return, followed through the functions that build it (`replies.py`, `shapes.py`) |
| errors | which of larder.errors the handlers can raise, followed through what they call (`failures.py`) |
| examples | events/ |

Whatever of this cannot be told from the code is an Undocumented, and no document is made.
"""


class Undocumented(Exception):
    """The code says something that the generator cannot read, or a declaration lacks."""
