"""docs/data-model.md names every attribute of the records that are stored by their fields."""

import importlib
import pkgutil
import re
from pathlib import Path

import larder
from larder.records import Form

PAGE = Path(__file__).parent.parent / "docs" / "data-model.md"


def test_the_page_names_every_attribute_of_a_record() -> None:
    named = set(re.findall(r"`([a-z0-9_]+)`", PAGE.read_text(encoding="utf-8")))
    repositories = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(larder.__path__, "larder.")
        if ".repository" in module.name
    ]
    forms = {
        f"{module.__name__}.{name}": form
        for module in repositories
        for name, form in vars(module).items()
        if isinstance(form, Form)
    }
    assert len(forms) >= 12
    missing = {name: {*form.names.values()} - named for name, form in forms.items()}
    assert {name: attributes for name, attributes in missing.items() if attributes} == {}
