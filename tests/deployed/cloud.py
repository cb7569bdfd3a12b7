"""A deployed stack that replaces a local cloud: the same address, log, team and key, for the tests of tests/e2e.

`larder --stack` creates accounts, as in docs/deploy.md. The tests and `larder --local` read the data folder of a
local cloud. Here it has the same files, which lead to the stack's tables and bucket.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from local.turbo_env import TurboEnv, write_turbo_env
from tests.deployed.front import serving
from tests.deployed.stack import STACK, TRIAL, Stack, packed
from tests.e2e.cloud import LocalCloud, free_port, run_larder
from tests.emulator.process import ROOT, emulator

OPERATOR = "operator@larder.local"
TEAM = "my-team"
ANNOUNCED = {"access-control-request-method": "PUT", "user-agent": "turbo 2.11.11"}
"""The headers of a preflight."""
TIMEOUT_S = 240
"""How long tests wait for a reply."""
_OPTION = "LARDER_"


@dataclass
class DeployedCloud(LocalCloud):
    """`start` of tests/e2e/cloud.py creates it if CLOUD is `deployed`. Its data is lost when it stops."""

    parameters: Mapping[str, str] = field(default_factory=lambda: TRIAL)
    stack: Stack | None = None
    bucket_policy: str = field(default="", repr=False)
    """As it was deployed."""
    _mail: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)
    """Messages by id, which never change. Each one that is shown costs a process."""
    _open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack, repr=False)

    @classmethod
    @contextlib.contextmanager
    def deployed(cls, data: Path, parameters: Mapping[str, str] = TRIAL) -> Iterator[DeployedCloud]:
        """A new one with its data in this new folder."""
        data.mkdir()
        made = cls(root=ROOT, data=data, port=free_port(), options={}, parameters=parameters)
        made.start()
        try:
            yield made
        finally:
            made.stop()

    def start(self) -> None:
        if self.stack is not None:
            raise RuntimeError("a stopped stack in an emulator cannot start again")
        try:
            started = emulator(self.data.with_name(f"{self.data.name}-emulator"))
            folder = self.data.with_name(f"{self.data.name}-packed")
            self.stack = Stack(self._open.enter_context(started), packed(folder))
            # As on a local cloud, everyone can sign up.
            options = {"LARDER_SIGN_UP_POLICY": "open", **dict(self.options)}
            self.stack.deploy({**self.parameters, **_parameters(options)})
            self.let_plain_http_in()
            self.open_front()
            self._begin()
        except BaseException:
            self.stop()
            raise

    def open_front(self) -> None:
        assert self.stack is not None
        self._open.enter_context(serving(self.stack, self.port, self.log_path))

    def let_plain_http_in(self) -> None:
        """Remove the bucket's policy. It refuses requests without TLS, and there is no TLS here."""
        assert self.stack is not None
        s3, bucket = self.stack.emulator.client("s3"), self.stack.outputs()["ArtifactsBucket"]
        self.bucket_policy = s3.get_bucket_policy(Bucket=bucket)["Policy"]
        s3.delete_bucket_policy(Bucket=bucket)

    def stop(self) -> None:
        self._open.close()

    def kill(self) -> None:
        self.stop()

    def operate(self, *arguments: str) -> Any:
        """Run `larder --stack` and return its output."""
        assert self.stack is not None
        environment = {"PATH": os.environ["PATH"], **self.stack.emulator.variables}
        return run_larder("--stack", STACK, *arguments, timeout_s=600, environment=environment)

    def mail(self) -> Iterator[dict[str, Any]]:
        for listed in self.operate("outbox", "list"):
            message_id = listed["id"]
            if message_id not in self._mail:
                self._mail[message_id] = self.operate("outbox", "show", message_id)
            yield self._mail[message_id]

    def _begin(self) -> None:
        """Create the first user, team and key, and the files that describe them and the stack."""
        assert self.stack is not None
        named = ("--email", OPERATOR, "--name", "Operator")
        self.operate("users", "create", *named)
        self.operate("teams", "create", "--name", "My team", "--slug", TEAM, "--owner", OPERATOR)
        made = self.operate(
            *("keys", "create", "--user", OPERATOR, "--team", TEAM),
            *("--name", "turbo on this machine", "--prefix", "larder_"),
        )
        url = f"http://127.0.0.1:{self.port}"
        write_turbo_env(self.data / "turbo.env", TurboEnv(url, made["key"], TEAM, made["id"]))
        running = self.stack.emulator
        described = {
            "pid": os.getpid(),
            "api_url": url,
            "environment": {
                **self.stack.variables(),
                **running.variables,
                "AWS_ENDPOINT_URL_DYNAMODB": running.url,
                "AWS_ENDPOINT_URL_LAMBDA": running.url,
            },
        }
        (self.data / "cloud.json").write_text(json.dumps(described))


def _parameters(options: dict[str, str]) -> dict[str, str]:
    """Convert variables of the functions to parameters of the template."""
    strange = [name for name in options if not name.startswith(_OPTION)]
    assert not strange, f"a deployed stack has no {strange}"
    return {
        "".join(part.capitalize() for part in name.removeprefix(_OPTION).split("_")): value
        for name, value in options.items()
    }
