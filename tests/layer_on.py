"""The layer in the process of the tests, with the tables and bucket of a running local cloud."""

import json

import pytest

from larder import aws
from larder.instance import restart
from larder.settings import edge_key_file, metrics_namespace, region, s3_endpoint, settings
from tests.e2e import cloud as local_clouds


class LayerOn:
    def __init__(self, environment: pytest.MonkeyPatch) -> None:
        self._environment = environment

    def __call__(self, server: local_clouds.LocalCloud) -> None:
        described = json.loads((server.data / "cloud.json").read_text())
        for name, value in described["environment"].items():
            self._environment.setenv(name, value)
        forget()


def forget() -> None:
    """Clear the layer's caches: clients, options, and the users and teams of keys."""
    aws.reset()
    restart()
    forget_options()


def forget_options() -> None:
    for cached in (settings, region, s3_endpoint, edge_key_file, metrics_namespace):
        cached.cache_clear()
