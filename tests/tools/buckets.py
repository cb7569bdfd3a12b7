"""An empty bucket for tests of what `make deploy` says about a bucket of yours."""

from collections.abc import Iterator
from contextlib import contextmanager

import boto3
import pytest
from moto import mock_aws

from larder_cli.deploy.existing_bucket import Bucket
from local.template import REGION

ACCOUNT = "123456789012"
NAME = "acme-build-cache"


@contextmanager
def empty_bucket() -> Iterator[Bucket]:
    """A bucket as S3 creates it."""
    with pytest.MonkeyPatch.context() as environment, mock_aws():
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(name, "testing")
        s3 = boto3.client("s3", region_name=REGION)
        s3.create_bucket(Bucket=NAME)
        yield Bucket(s3, NAME, ACCOUNT, REGION, "aws")
