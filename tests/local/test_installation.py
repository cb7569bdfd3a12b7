"""Errors if DynamoDB Local lacks something on this machine."""

from pathlib import Path

import pytest

from tests.local.test_serve import serve


def program(folder: Path, name: str, prints: str) -> None:
    """A program that prints a line in place of java's version."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{prints}' >&2\n")
    path.chmod(0o755)


def refusal(tmp_path: Path, **variables: str) -> str:
    """The error of a start that fails before it installs or stores anything."""
    data = tmp_path / "data"
    result = serve(tmp_path, ENGINE="dynamodb-local", PORT="0", DATA=str(data), **variables)
    assert (result.returncode, result.stdout) == (1, "")
    assert not data.exists()
    return result.stderr


def test_java_that_is_missing_is_told_with_how_to_install_it(tmp_path: Path) -> None:
    message = refusal(tmp_path, PATH=str(tmp_path), JAVA_HOME="")
    assert message.startswith("larder: ENGINE=dynamodb-local needs Java 17 or newer")
    assert "apt-get install openjdk-17-jre-headless" in message


def test_a_java_home_without_java_is_told(tmp_path: Path) -> None:
    assert f"no Java is in JAVA_HOME ({tmp_path})" in refusal(tmp_path, JAVA_HOME=str(tmp_path))


@pytest.mark.parametrize(
    "prints", ['openjdk version "11.0.2" 2019-01-15', 'java version "1.8.0_401"', "No Java here"]
)
def test_a_java_that_is_too_old_is_told_with_what_it_says(tmp_path: Path, prints: str) -> None:
    program(tmp_path / "java" / "bin", "java", prints)
    message = refusal(tmp_path, JAVA_HOME=str(tmp_path / "java"))
    assert f"is not ({prints})" in message
    assert "openjdk-17-jre-headless" in message


def test_an_unknown_engine_is_told(tmp_path: Path) -> None:
    result = serve(tmp_path, ENGINE="dynalite", PORT="0", DATA=str(tmp_path / "data"))
    assert result.returncode == 2
    assert "must be ministack or dynamodb-local" in result.stderr
