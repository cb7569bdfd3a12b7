"""The page on which one chooses a person, as HTML."""

from __future__ import annotations

from markupsafe import Markup

from local.page import document, fill
from local.provider.people import PEOPLE, Person

_STYLE = Markup(
    """
.people { margin: 0 0 1.25rem; padding: 0; list-style: none }
.people a { display: block; padding: .65rem 1rem; border: 1px solid var(--field); border-radius: .6rem }
.people a { color: inherit; text-decoration: none }
.people a:hover { background: var(--well) }
.people strong, .people span { display: block }"""
)
_PAGE = """<h1>{name}</h1>
<p>This is a provider for tests, in your local cloud. Choose a person to sign in. It asks for no password.</p>
<ul class="people">
{people}
</ul>
<p><a href="{cancel}">Cancel</a></p>
"""
_PERSON = """<li><a href="{url}"><strong>{name}</strong>\
<span>{email}</span><span class="soft">{remark}</span></a></li>"""


def people_page(name: str, urls: dict[str, str], *, cancel: str) -> Markup:
    """The page. `urls` sign a person in, by subject; `cancel` leads back without one."""
    people = Markup("\n").join(
        fill(
            _PERSON,
            url=urls[person.subject],
            name=person.name,
            email=person.email,
            remark=_remark(person),
        )
        for person in PEOPLE.values()
    )
    return document(
        f"Sign in · {name}", fill(_PAGE, name=name, people=people, cancel=cancel), style=_STYLE
    )


def _remark(person: Person) -> str:
    groups = f"In the group {', '.join(person.groups)}" if person.groups else "In no group"
    return groups if person.is_verified else f"{groups}. The address is not verified"
