"""The output of `make package`, and the checks of `make release`."""

import hashlib
import json
import re
import subprocess
import tarfile
from pathlib import Path
from zipfile import ZipFile

import pytest

from larder_cli.deploy.release import CHANGES, DESCRIPTION, Release, open_release
from tools.release.assets import NOTES, write_assets
from tools.release.changes_since import changes_since
from tools.release.check import problems
from tools.release.notes import NoUpgradeNotes, notes, published_notes, upgrade_steps
from tools.release.package import SETTINGS, TEMPLATE, Unbuilt, package, version
from tools.release.rehearse import differing, next_section
from tools.release.sidecar import SIDECAR

BUILT_TEMPLATE = """\
Resources:
  GetOk:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: GetOk
  GetStatus:
    Type: AWS::Serverless::Function
    Properties:
      CodeUri: GetStatus
  LarderLayer:
    Type: AWS::Serverless::LayerVersion
    Properties:
      ContentUri: LarderLayer
"""


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A build of two functions and the layer, as SAM would create it."""
    folder = tmp_path / "build"
    for name in ("GetOk", "GetStatus", "LarderLayer/python/larder"):
        (folder / name).mkdir(parents=True)
        (folder / name / "module.py").write_text("value = 1\n")
    (folder / TEMPLATE).write_text(BUILT_TEMPLATE)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_archives_are_named_by_their_content_and_the_template_names_them(built: Path, tmp_path: Path) -> None:
    package(built, tmp_path / "dist")
    terms, functions, sidecar, layer, settings, template = names(tmp_path / "dist")
    assert (terms, sidecar, settings, template) == ("LICENSE", SIDECAR, SETTINGS, TEMPLATE)
    assert ZipFile(tmp_path / "dist" / functions).namelist() == ["module.py"]
    assert ZipFile(tmp_path / "dist" / layer).namelist() == ["python/larder/module.py"]
    for name, archive in (("functions", functions), ("layer", layer)):
        digest = hashlib.sha256((tmp_path / "dist" / archive).read_bytes()).hexdigest()
        assert archive == f"{name}-{digest[:16]}.zip"
    written = (tmp_path / "dist" / TEMPLATE).read_text()
    assert written.count(f"CodeUri: {functions}\n") == 2
    assert written.count(f"ContentUri: {layer}\n") == 1


def test_archives_do_not_depend_on_the_dates_of_files(built: Path, tmp_path: Path) -> None:
    package(built, tmp_path / "one")
    for path in built.rglob("*.py"):
        path.write_text(path.read_text())
        path.chmod(0o600)
    package(built, tmp_path / "other")
    assert names(tmp_path / "one") == names(tmp_path / "other")


def test_files_of_an_earlier_package_are_deleted(built: Path, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / "old.zip").write_text("")
    package(built, tmp_path / "dist")
    assert not (tmp_path / "dist" / "old.zip").exists()


def test_functions_of_different_code_are_not_packed(built: Path, tmp_path: Path) -> None:
    (built / "GetOk" / "module.py").write_text("value = 2\n")
    with pytest.raises(Unbuilt, match="2 different"):
        package(built, tmp_path / "dist")


def test_packing_without_a_build_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Unbuilt, match="make build"):
        package(tmp_path, tmp_path / "dist")


KEPT = {"Bucket": {"Type": "AWS::S3::Bucket"}}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree that can be released as 1.2.3."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 1.2.3 (2026-12-01)\n\n### Upgrade from 1.2.2\n\n- Nothing.\n"
    )
    (tmp_path / "tests" / "upgrades" / "recorded").mkdir(parents=True)
    (tmp_path / "tests" / "upgrades" / "recorded" / "1.2.3.json").write_text("{}")
    (tmp_path / "tests" / "upgrades" / "resources").mkdir()
    (tmp_path / "tests" / "upgrades" / "resources" / "1.2.3.json").write_text(json.dumps(KEPT))
    (tmp_path / "template.yaml").write_text(json.dumps({"Resources": KEPT}))
    git(tmp_path, "init", "--quiet")
    commit(tmp_path)
    return tmp_path


def git(tree: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    subprocess.run(["git", "-C", tree, *identity, *arguments], check=True, capture_output=True)


def commit(tree: Path) -> None:
    git(tree, "add", "--all")
    git(tree, "commit", "--quiet", "--message", "All")


def test_a_complete_tree_can_be_released(tree: Path) -> None:
    assert list(problems(tree, "1.2.3")) == []


@pytest.mark.parametrize(
    ("version", "words"), [("1.2", "three numbers"), ("1.2.4", "no heading"), ("1.2.4", "make record-release")]
)
def test_an_incomplete_version_cannot_be_released(tree: Path, version: str, words: str) -> None:
    assert any(words in problem for problem in problems(tree, version))


def test_the_recorded_resources_are_those_of_the_release(tree: Path) -> None:
    both = {**KEPT, "Secret": {"Type": "AWS::SecretsManager::Secret"}}
    (tree / "template.yaml").write_text(json.dumps({"Resources": both}))
    commit(tree)
    (problem,) = problems(tree, "1.2.3")
    assert "resources/1.2.3.json is not what template.yaml has: run `make record-release`" in problem


def test_a_changelog_that_does_not_begin_with_the_upgrade_cannot_be_released(tree: Path) -> None:
    (tree / "CHANGELOG.md").write_text("## 1.2.3 (2026-12-01)\n\n### Added\n\n- All.\n")
    commit(tree)
    assert list(problems(tree, "1.2.3")) == ["CHANGELOG.md: the section 1.2.3 does not begin with `### Upgrade`"]


def test_the_steps_of_an_upgrade_are_plain_text_by_the_version_to_come_from() -> None:
    changelog = """
## 1.2.3 (2026-12-01)

### Upgrade from 1.2.2

- **First:** read [the page](docs/install.md#upgrade),
  then set `A=b`.
- Second.

### Added

- Other.
"""
    assert upgrade_steps(changelog) == {"1.2.2": ["First: read the page, then set A=b.", "Second."]}
    assert notes(changelog, "1.2.3").startswith("### Upgrade from 1.2.2\n\n- **First:**")


def test_a_release_lists_what_changes_since_the_one_before(tmp_path: Path) -> None:
    folder = tmp_path / "tests" / "upgrades" / "types"
    folder.mkdir(parents=True)
    table, queue = "AWS::DynamoDB::Table", "AWS::SQS::Queue"
    for number, types in (
        ("0.9.0", {queue: ["Other"]}),
        ("0.10.0", {table: ["Users"], queue: ["Failures", "Old"]}),
        ("1.0.0", {}),
    ):
        (folder / f"{number}.json").write_text(json.dumps(types))
    template = {
        "Resources": {
            "Users": {"Type": table},
            "Failures": {"Type": queue},
            "Keys": {"Type": table},
            "LayerOfAnotherContent": {"Type": "AWS::Lambda::LayerVersion"},
        }
    }
    assert changes_since(tmp_path, template, "1.0.0").splitlines() == [
        "Since 0.10.0:",
        "  added      1 resource: 1 DynamoDB::Table",
        "  removed    Old (SQS::Queue)",
    ]
    assert changes_since(tmp_path, template, "0.9.0") == "The first release.\n"


def test_a_version_is_released_once_and_only_as_committed(tree: Path) -> None:
    git(tree, "tag", "v1.2.3")
    assert list(problems(tree, "1.2.3")) == []
    git(tree, "commit", "--quiet", "--allow-empty", "--message", "Later")
    assert ["raise the version" in one for one in problems(tree, "1.2.3")] == [True]
    (tree / "CHANGELOG.md").write_text("## 1.2.4 (2026-12-02)\n")
    assert any("not committed" in problem for problem in problems(tree, "1.2.4"))


def test_a_tag_of_another_version_than_the_trees_cannot_be_released(tree: Path) -> None:
    git(tree, "tag", "v1.2.4")
    git(tree, "tag", "other")
    assert list(problems(tree, "1.2.3")) == ["the tag v1.2.4 is not that of the version 1.2.3"]


def test_only_one_file_has_the_version() -> None:
    root = Path(__file__).resolve().parents[2]
    for project in ("pyproject.toml", "clients/cli/pyproject.toml"):
        assert '\nversion = "0" # Larder\'s is in layers/larder/pyproject.toml\n' in (root / project).read_text()
    assert version() != "0"


# What is published ------------------------------------------------------------------------------

SECTION = """\
### Upgrade from 1.2.2

- Read [the
  page](docs/install.md#upgrade) and [uv](https://docs.astral.sh/uv/).
"""


@pytest.fixture
def release(tmp_path: Path) -> Release:
    folder = tmp_path / "larder-1.2.3"
    folder.mkdir()
    (folder / CHANGES).write_text("Since 1.2.2:\n  added      1 resources: 1 SQS::Queue\n")
    described = {"version": "1.2.3", "readable_since": "1.1.0", "files": {}}
    (folder / DESCRIPTION).write_text(json.dumps(described))
    return open_release(folder)


def test_the_published_notes_begin_with_the_upgrade_and_link_to_the_pages_of_the_version(release: Release) -> None:
    text = published_notes(release, SECTION, "acme/larder")
    pages = "https://github.com/acme/larder/blob/v1.2.3/"
    assert text.startswith("### Upgrade from 1.2.2\n")
    assert f"[the\n  page]({pages}docs/install.md#upgrade) and [uv](https://docs.astral.sh/uv/)" in text
    for line in (
        "uv tool install --force ./larder_cache-1.2.3-py3-none-any.whl",
        "You can go back to 1.1.0 and newer",
        "  added      1 resources: 1 SQS::Queue",
        "gh attestation verify larder-1.2.3.tar.gz --repo acme/larder",
    ):
        assert line in text


def test_the_archives_have_the_release_and_the_module_with_the_release_inside(release: Release, tmp_path: Path) -> None:
    whole, module, written = write_assets(release, tmp_path, SECTION, "acme/larder")
    assert written.name == NOTES
    with tarfile.open(whole) as archive:
        assert archive.getnames() == [f"larder-1.2.3/{one}" for one in (DESCRIPTION, CHANGES)]
    with tarfile.open(module) as archive:
        found = archive.getmembers()
    names = [one.name.removeprefix("larder-terraform-1.2.3/") for one in found]
    assert [name for name in names if name.startswith("release/")] == [
        f"release/{one}" for one in (DESCRIPTION, CHANGES)
    ]
    assert {(one.mode, one.mtime, one.uid, one.uname) for one in found} == {(0o644, 0, 0, "")}


def test_archives_and_notes_are_the_same_each_time(release: Release, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    files = write_assets(release, folders[0], SECTION, "acme/larder")
    (release.folder / CHANGES).touch()
    write_assets(release, folders[1], SECTION, "acme/larder")
    assert list(differing(files, *folders)) == []
    (folders[1] / NOTES).write_text("other")
    assert list(differing(files, *folders)) == [NOTES]


def test_a_rehearsal_reads_the_next_section_and_refuses_one_without_the_upgrade() -> None:
    unreleased = f"# Changelog\n\n## Unreleased\n\n{SECTION}\n## 1.2.3 (2026-12-01)\n\n{SECTION}"
    assert next_section(unreleased, "1.2.3").startswith("### Upgrade from 1.2.2")
    named = unreleased.replace("## Unreleased", "## 1.2.4 (2026-12-02)")
    assert next_section(named, "1.2.4").startswith("### Upgrade from 1.2.2")
    with pytest.raises(NoUpgradeNotes, match="Unreleased does not begin"):
        next_section(unreleased.replace("### Upgrade", "### Added", 1), "1.2.3")


def test_the_changelog_can_be_rehearsed() -> None:
    root = Path(__file__).resolve().parents[2]
    assert next_section((root / "CHANGELOG.md").read_text(), version())


RELEASED = {"0.3.0": "d3b6966e2dbfa522", "0.2.0": "d34a3f4ea56dac5a", "0.1.0": "26dcb1b9258880ba"}
"""A checksum of the words of each released section of the changelog, without the targets of its links."""


def test_released_sections_of_the_changelog_stay_as_they_are() -> None:
    text = (Path(__file__).parents[2] / "CHANGELOG.md").read_text()
    released = re.split(r"^## (\d[\w.]*).*\n", text, flags=re.MULTILINE)[1:]
    words = {
        name: re.sub(r"\]\([^)]*\)", "]", section).split()
        for name, section in zip(released[::2], released[1::2], strict=True)
    }
    assert {
        name: hashlib.sha256(" ".join(section).encode()).hexdigest()[:16] for name, section in words.items()
    } == RELEASED
