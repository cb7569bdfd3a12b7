"""GET /docs and GET /docs/{proxy+}"""

import io
import re
import tarfile
import zipfile
from collections.abc import Iterator

import pytest

from larder import project
from tests.requests import Sender
from tools.documentation import ARCHIVE, ROOT, rendered

PAGES = sorted(name.removesuffix(".html") for name in zipfile.ZipFile(ARCHIVE).namelist() if name.endswith(".html"))


def text_of(path: str) -> str:
    reply = Sender(None)("GET", path)
    assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8"), path
    return reply.body.decode()


def links(html: str) -> Iterator[str]:
    yield from re.findall(r'<a href="([^"]*)"', html)


def test_it_needs_no_credentials_and_runs_no_script(environment: pytest.MonkeyPatch) -> None:
    reply = Sender(None)("GET", "/docs/why")
    assert b"<script" not in reply.body
    policy = reply.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'none';" in policy
    assert "frame-ancestors 'none'" in policy
    assert reply.headers["cache-control"] == "public, max-age=300"
    assert "<title>Why tasks miss" in reply.body.decode()
    assert f"Larder {project.VERSION}" in reply.body.decode()


def test_every_page_is_served_and_every_link_leads_to_a_page_and_a_heading(environment: pytest.MonkeyPatch) -> None:
    html = {f"/docs/{page}".removesuffix("/index"): text_of(f"/docs/{page}".removesuffix("/index")) for page in PAGES}
    assert len(html) == len(list((ROOT / "docs").rglob("*.md")))
    assert "<!--" not in "".join(html.values()).replace("<!doctype", "")
    assert [page for page, text in html.items() if " style=" in text] == [], "the content security policy refuses them"
    broken = []
    for page, text in html.items():
        for link in links(text):
            path, _, anchor = link.partition("#")
            if path.startswith(("https://", "http://", "/console", "/openapi.json")):
                continue
            target = html.get(path or page)
            found = target is not None or Sender(None)("GET", path).status == 200
            if not found or (anchor and f'id="{anchor}"' not in (target or "")):
                broken.append((page, link))
    assert broken == []


def test_the_folder_for_ci_and_the_file_for_other_tools_are_those_of_this_version(
    environment: pytest.MonkeyPatch,
) -> None:
    scripts = Sender(None)("GET", "/docs/ci.tar")
    assert (scripts.status, scripts.headers["content-type"]) == (200, "application/octet-stream")
    with tarfile.open(fileobj=io.BytesIO(scripts.body)) as archive:
        packed = {one.name: archive.extractfile(one).read() for one in archive}  # type: ignore[union-attr]
    folder = ROOT / "clients" / "ci"
    assert packed == {
        one.relative_to(folder).as_posix(): one.read_bytes() for one in folder.rglob("*") if one.is_file()
    }
    sidecar = Sender(None)("GET", "/docs/larder.pyz")
    assert "larder_proxy/__main__.py" in zipfile.ZipFile(io.BytesIO(sidecar.body)).namelist()


def test_assistants_get_a_skill_and_a_list_of_the_pages(environment: pytest.MonkeyPatch) -> None:
    skill, pages = (Sender(None)("GET", f"/docs/{name}") for name in ("SKILL.md", "llms.txt"))
    assert skill.body == (ROOT / "clients" / "skill" / "SKILL.md").read_bytes()
    assert {one.headers["content-type"] for one in (skill, pages)} == {"text/plain; charset=utf-8"}
    text = pages.body.decode()
    assert text.startswith("# Larder\n\n> Larder is a remote build cache")
    assert "- [trust](/docs/trust): CI jobs without a stored secret" in text
    listed = {path.partition("#")[0] for path in re.findall(r"^- \[.+?\]\((.+?)\)", text, re.MULTILINE)}
    broken = [path for path in listed if path.startswith("/") and Sender(None)("GET", path).status != 200]
    assert broken == []
    # Every page of the index, which has all pages.
    assert {f"/docs/{page}" for page in PAGES if page != "index" and not page.startswith("decisions/")} <= listed


def test_the_skill_has_the_format_of_agent_skills() -> None:
    """agentskills.io: the limits of its front matter."""
    front = (ROOT / "clients" / "skill" / "SKILL.md").read_text().split("---\n")[1]
    fields = dict(line.split(": ", 1) for line in front.splitlines())
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", fields["name"])
    assert 0 < len(fields["description"]) <= 1024


@pytest.mark.parametrize("path", ["/docs/nothing", "/docs/why.html", "/docs/../template.yaml", "/docs//etc"])
def test_404_elsewhere(environment: pytest.MonkeyPatch, path: str) -> None:
    reply = Sender(None)("GET", path)
    assert reply.status == 404
    assert "Page not found" in reply.body.decode()


def test_links_to_other_files_lead_to_the_repository_once_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "# A\n\n[License](../LICENSE), [turbo.md](clients/turbo.md#preflight), [ci](../clients/ci/github) "
        "![A picture](a.png)"
    )
    assert "<p>License, <a" in rendered("teams.md", text)
    assert (
        '<a href="/docs/clients/turbo#preflight">turbo</a>, <a href="/docs/ci.tar">ci</a> <em>A picture</em>'
        in rendered("teams.md", text)
    )
    monkeypatch.setattr(project, "REPOSITORY", "https://github.com/ada/larder")
    link = f'<a href="https://github.com/ada/larder/blob/v{project.VERSION}/LICENSE">License</a>'
    assert link in rendered("teams.md", text)
    assert "git clone https://github.com/ada/larder" in rendered(
        "teams.md", "`git clone https://github.com/OWNER/larder`"
    )
