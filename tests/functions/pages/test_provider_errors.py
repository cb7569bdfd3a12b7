"""The sentences for what a provider's sign-in can end with."""

import re
from pathlib import Path

import pytest

from larder.sso.refusals import Refusal
from larder.web.pages import page
from tests.page import opened

SCRIPT = Path(page.__code__.co_filename).with_name("html") / "provider-errors.js"


def test_each_code_has_a_sentence() -> None:
    sentences = dict(re.findall(r"^  (\w+): [\"`](.+)[\"`],$", SCRIPT.read_text(), re.MULTILINE))
    assert sentences.keys() == set(Refusal)
    assert all("_" not in sentence for sentence in sentences.values())


@pytest.mark.parametrize("path", ["/sign-in", "/turborepo/token", "/join"])
def test_pages_that_sign_in_have_them(environment: pytest.MonkeyPatch, path: str) -> None:
    (script,) = opened(path).texts["script"]
    assert "account_not_linked" in script
