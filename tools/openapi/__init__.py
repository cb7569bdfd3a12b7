"""Makes the OpenAPI document of the whole API from the template, the handlers and what these name.

| In the document | From |
|---|---|
| paths and methods | template.yaml |
| summaries, operation ids | the handlers' docstrings and names |
| who can call | the caller types in the handlers' signatures |
| JSON bodies of requests | the pydantic models that the dependencies parse with |
| headers, queries, bodies that are parsed by hand | `requests.py`, with the parsers' own patterns and limits |
| replies | the handlers' return types (`replies.py`), and the TypedDicts that these name (`shapes.py`) |
| errors | the classes of larder.errors that the handlers can raise, followed through what they call (`failures.py`) |
| examples | events/ |

What the code does not say is an Undocumented error, and no document is made.
"""


class Undocumented(Exception):
    """The code has something that the generator cannot read, or lacks a declaration."""
