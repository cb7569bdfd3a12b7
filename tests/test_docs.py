"""The documentation is complete and correct about options, errors, endpoints, links and cited files."""

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from larder.api_keys.ownership import GRACE
from larder.artifacts.models import HELD_BODY_BYTES
from larder.issuers import fetching
from larder.issuers.keys import TRIED_AGAIN_AFTER
from larder.issuers.verification import SIGN_IN_LEEWAY_S
from larder.settings import settings
from larder.sso.callback import MOST_GROUPS
from larder.web.replies.errors import REPLIES
from larder_cli.doctor.findings import PREFLIGHT_LINE
from tools.documentation import anchor_of
from tools.release.wheel import NAME

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / ".github").glob("*.md")])


def test_every_error_is_documented_with_its_status_its_cause_and_its_remedy() -> None:
    rows = re.findall(r"^\| (\d+) (`\w+`(?:, `\w+`)*) \| .+ \| .+ \|$", codes_of_errors(), re.MULTILINE)
    documented = {(int(status), code) for status, codes in rows for code in re.findall(r"\w+", codes)}
    assert documented == {(reply.status, reply.code) for reply in REPLIES.values()}
    assert [int(status) for status, _ in rows] == sorted(int(status) for status, _ in rows)


def test_every_error_is_in_a_test() -> None:
    """Each code as clients get it: in upper case under /api/auth."""
    tests = "".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))
    quoted = {code.lower() for code in re.findall(r"\b([A-Z_]+|[a-z_]+)[\"']", tests)}
    assert {reply.code for reply in REPLIES.values()} - quoted == set()


def codes_of_errors() -> str:
    _, _, section = (DOCS / "errors.md").read_text().partition("## The codes\n")
    return section.partition("\n## ")[0]


@pytest.mark.usefixtures("aws_in_memory")
def test_figures_about_security_are_those_of_the_code() -> None:
    options = settings()
    minutes, numbers = {600: "ten minutes"}, {2: "two"}
    facts = {
        ".github/SECURITY.md": [
            f"artifacts of up to {HELD_BODY_BYTES // 1024} KiB",
            f"for one object and {minutes[options.upload_url_seconds]}",
        ],
        "docs/security.md": [
            f"one object, one method and {minutes[options.download_url_seconds]}",
            f"the {options.max_keys_per_user + 1}st key gets 409",
            f"keys that do more than builds after {GRACE.days} days",
        ],
        "docs/api-keys.md": [f"ends {GRACE.days} days after its maker has left"],
        "docs/operations.md": [f"[end after {GRACE.days} days]"],
        "docs/sso.md": [
            f"up to {MOST_GROUPS} groups, or more",
            f"more than {MOST_GROUPS} groups change nothing",
            f"the reply can have {fetching.MOST_BYTES // 1024} KiB",
            f"off by up to {SIGN_IN_LEEWAY_S} seconds",
            f"not twice in {numbers[TRIED_AGAIN_AFTER.seconds]} seconds",
        ],
    }
    for page, sentences in facts.items():
        text = " ".join((ROOT / page).read_text().split())
        assert [sentence for sentence in sentences if sentence not in text] == [], page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_existing_targets(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_index_of_the_documentation_lists_every_page() -> None:
    index = DOCS / "README.md"
    listed = {(DOCS / target).resolve() for target in re.findall(r"\]\(([^)#]+)", index.read_text())}
    pages = {page for page in PAGES if DOCS in page.parents and page.parent.name != "decisions"}
    assert pages - {index} <= listed


QUESTIONS = {
    "deploy": ("install.md", "the-command", "larder install --env prod"),
    "a poisoned cache": ("protection.md", "recover-from-a-poisoning", "larder artifacts delete acme --writer ID"),
    "a key that is refused": ("errors.md", "the-codes", "| 401 `unauthorized` |"),
    "Why 401": ("troubleshooting.md", "what-turbo-shows", "| `401 Unauthorized` for every upload, "),
    "without a secret": ("trust.md", "connect-github", "id-token: write"),
    "when AWS fails": ("promises.md", "for-builds", "never fails a build"),
}
"""What a reader looks for in the index: the link there, the anchor of a heading of its page, and the answer."""


@pytest.mark.parametrize("question", QUESTIONS)
def test_two_clicks_in_the_index_lead_to_the_answer(question: str) -> None:
    page, anchor, answer = QUESTIONS[question]
    rows = [line for line in (DOCS / "README.md").read_text().splitlines() if f"]({page})" in line]
    assert any(question in row for row in rows)
    assert answer in section(DOCS / page, anchor)


def section(page: Path, anchor: str) -> str:
    """The text below the heading with this anchor, up to the next heading of its level or above."""
    text = page.read_text()
    for match in re.finditer(r"^(#+) (.+)$", text, re.MULTILINE):
        if anchor_of(match[2]) == anchor:
            after = text[match.end() :]
            following = re.search(rf"^#{{1,{len(match[1])}}} ", after, re.MULTILINE)
            return after[: following.start()] if following else after
    raise AssertionError(f"{page.name} has no heading #{anchor}")


def anchors(page: Path) -> set[str]:
    """The anchors of the page: its headings in GitHub's form, and explicit anchors."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {anchor_of(heading) for heading in headings} | set(re.findall(r'^<a id="([^"]+)"></a>$', text, re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_to_headings_have_existing_targets(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
        assert anchor in anchors(page.parent / target if target else page), f"{target}#{anchor}"


@pytest.mark.parametrize("page", ["deploy.md", "operations.md"])
def test_the_top_of_a_long_page_lists_its_sections_in_order(page: str) -> None:
    top, *sections = (DOCS / page).read_text().split("\n## ")
    listed = re.findall(r"\(#([\w-]+)\)", top)
    headings = [section.partition("\n")[0].lower().replace(" ", "-") for section in sections]
    assert [anchor for anchor in listed if anchor in headings] == headings


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_table_has_a_heading_and_the_same_cells_in_each_row(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        heading, *rows = re.sub(r"\\\||`[^`]*`", "", table).splitlines()
        assert rows, heading
        assert re.fullmatch(r"\|[\s:|-]+\|", rows[0]), heading
        for row in rows:
            assert row.count("|") == heading.count("|"), row


CITED_DOCUMENT = re.compile(r"(?<![\w./*-])([\w./-]+\.md)(?![\w/])(?:#([\w-]*\w))?(?:, ([A-Z][\w ]*\w)\b(?!\.\w))?")
"""`docs/clients/turbo.md#preflight`, or `docs/deploy.md, Custom domain`, in a comment or message."""

PAGES_OF_TURBO = (
    "README.md", "docs/login.md", "layers/larder/src/larder/web/html/console/start.js",
    "layers/larder/src/larder/web/html/home.html", "layers/larder/src/larder/web/html/success.html",
)  # fmt: skip
"""Pages that show how to run turbo."""


@pytest.mark.parametrize("page", PAGES_OF_TURBO)
def test_pages_show_the_line_with_which_every_artifact_is_cached(page: str) -> None:
    text = (ROOT / page).read_text()
    assert "turbo run build" in text
    assert PREFLIGHT_LINE in text


UNPUBLISHED = re.compile(r"\bspec(?:ification)? ?\d+|\(reference: |\(design: |\bdecision \d+|\(00\d\d\)", re.IGNORECASE)
"""Citations of sources outside the repository. A decision is cited by a link."""

WRITTEN_BY_HAND = {".py", ".yaml", ".toml", ".html", ".js", ".mjs", ""}


def documents(text: str) -> list[tuple[str, str, str]]:
    """The documents that a text cites without a link: path, anchor and heading. Anchor and heading can be empty."""
    found = CITED_DOCUMENT.finditer(without_links(text))
    return [(match[1], match[2] or "", match[3] or "") for match in found]


def without_links(text: str) -> str:
    return re.sub(r"\[[^\]]*\]\([^)]*\)", "", text)


def broken_citations(file: Path) -> Iterator[str]:
    text = file.read_text()
    for match in UNPUBLISHED.finditer(without_links(text)):
        yield match[0]
    for path, anchor, heading in documents(text):
        # What a command writes, and the skill as a deployment serves it.
        if path.startswith("dist/") or path.endswith("SKILL.md"):
            continue
        cited = next((p for p in (ROOT / path, DOCS / path, file.parent / path) if p.exists()), None)
        if cited is None:
            yield path
        elif anchor and anchor not in anchors(cited):
            yield f"{path}#{anchor}"
        elif heading and not re.search(rf"^##+ {re.escape(heading)}$", cited.read_text(), re.MULTILINE):
            yield f"{path}, {heading}"


def test_cited_documents_and_headings_exist() -> None:
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    sources = [
        ROOT / name
        for name in names.split("\0")
        if name and Path(name).suffix in WRITTEN_BY_HAND and (ROOT / name).exists()
    ]
    assert len(sources) > 500
    broken = {
        str(file.relative_to(ROOT)): citations
        for file in [*sources, *PAGES]
        if file != Path(__file__) and (citations := list(broken_citations(file)))
    }
    assert broken == {}


def test_broken_citations_are_found(tmp_path: Path) -> None:
    file = tmp_path / "module.py"
    good = "docs/clients/turbo.md#preflight and docs/deploy.md, Custom domain."
    bad = [
        "spec 2", "(reference: ", "decision 12", "(0039)", "turbo-client.md", "docs/usage.md#nothing",
        "docs/usage.md, None",
    ]  # fmt: skip
    file.write_text(f"{good}\n" + "\n".join(bad))
    assert sorted(broken_citations(file)) == sorted(bad)


def conformance_rows() -> list[list[str]]:
    lines = (DOCS / "conformance.md").read_text().splitlines()
    rows = [line.strip("|").split(" | ") for line in lines if line.startswith("| ")]
    return [row for row in rows if not row[0].startswith(" Section")]


@pytest.mark.parametrize("row", conformance_rows(), ids=lambda row: f"{row[0].strip()}: {row[1]}")
def test_every_deviation_from_the_descriptions_names_its_reason_and_its_test(row: list[str]) -> None:
    section, description, larder, reason, tests = (cell.strip() for cell in row)
    assert all((section, description, larder, reason))
    named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", tests)
    assert named
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(), f"{file}::{test}"


# Recipes ----------------------------------------------------------------------------------------


INSTALL = re.compile(
    r"\b(?:uvx|pipx (?:run|install)|uv tool (?:run|install)|(?:uv )?pip3? install|npx|npm (?:ci|i|install)) "
    r"(?P<words>[^\n;&|`)#>]+)"
)
THEIRS = {"better-auth", "nx", "skills", "turbo", "uv"}
"""Names in recipes that belong to others, who publish something under them."""
TEXTS = [
    *PAGES,
    ROOT / "tools/release/notes.py",
    ROOT / "tools/release/wheel.py",
    *(path for folder in ("clients/ci", "deploy") for path in (ROOT / folder).rglob("*.*")),
]


def installed(text: str) -> Iterator[str]:
    """What the commands of a text install. Files and folders begin with `./`, or end with `.whl`."""
    text = re.sub(r"^ *#.*$", "", text, flags=re.MULTILINE)
    for command in INSTALL.finditer(text.replace("\\\n", " ")):
        words = [one.strip("\"',]") for one in command["words"].split()]
        runs_one = command[0].startswith(("uvx", "npx", "pipx run", "uv tool run"))
        given = [
            word
            for before, word in zip(["", *words], words, strict=False)
            if not word.startswith("-") and before not in ("--only-binary", "--python-version", "--requirement")
        ]
        yield from given[:1] if runs_one else given


def packages() -> dict[str, dict[str, Any]]:
    """The packages of this repository that could be built: their pyproject.toml, by folder."""
    folders = ("clients/cli", "clients/sidecar", "layers/larder")
    return {one: tomllib.loads((ROOT / one / "pyproject.toml").read_text()) for one in folders}


def is_named(word: str) -> bool:
    return not word.startswith(("./", "git+", "$")) and not word.endswith(".whl")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_recipes_ask_an_index_only_for_names_that_others_publish(path: Path) -> None:
    names = {re.split(r"(?<!^)[@=<>]", one)[0] for one in installed(path.read_text()) if is_named(one)}
    assert names <= THEIRS | {"@better-auth/api-key"}


@pytest.mark.parametrize("command", ["uvx larder-cache@1.2.3 doctor", "pip install --quiet larder-cli"])
def test_a_recipe_that_names_one_of_our_packages_is_found(command: str) -> None:
    assert [is_named(one) for one in installed(f"```\n{command}\n```\n")] == [True]


def test_the_recipe_for_pip_names_every_folder_that_it_needs() -> None:
    text = (DOCS / "operator-cli.md").read_text()
    folders = {one.removeprefix("./larder/") for one in installed(text) if one.startswith("./larder/")}
    ours = {one["project"]["name"]: folder for folder, one in packages().items()}
    needed = {"clients/cli"}
    for folder in folders:
        dependencies = packages()[folder]["project"].get("dependencies", [])
        needed |= {ours[name] for name in dependencies if name in ours}
    assert folders == needed


def test_contributing_lists_the_names_to_reserve() -> None:
    _, _, release = (ROOT / "CONTRIBUTING.md").read_text().partition("\n## Release\n")
    ours = {package["project"]["name"] for package in packages().values()} | {NAME}
    assert set(re.findall(r"`(larder[a-z-]*)`", release)) == ours
