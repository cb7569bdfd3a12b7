"""A stack without the edge, with it, and without it again, in this order.

The emulator has CloudFront's resources, but serves no distribution. Its reference to a secret is not the ARN, so
functions do not read the key of the edge there. So this shows what is deployed and who can read the key. The local edge
shows what passes.
"""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.deployed.cloud import ANNOUNCED, TIMEOUT_S, DeployedCloud
from tests.deployed.stack import TRIAL, Stack
from tests.permissions import RESOURCES

pytestmark = pytest.mark.e2e

OF_THE_EDGE = {name for name, one in RESOURCES.items() if one.get("Condition") == "HasEdge"}
SIGNERS = {"FetchArtifact", "Preflight"}
"""The functions that sign addresses."""


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeployedCloud]:
    with DeployedCloud.deployed(tmp_path_factory.mktemp("edge") / "data") as made:
        yield made


def address(cloud: DeployedCloud) -> str:
    """Where an upload is sent."""
    reply = httpx.request(
        "OPTIONS",
        f"{cloud.url}/v8/artifacts/abc",
        headers={"authorization": f"Bearer {cloud.token}", **ANNOUNCED},
        params={"slug": cloud.team},
        trust_env=False,
        timeout=TIMEOUT_S,
    )
    assert reply.status_code == 204, reply.text
    return reply.headers["location"]


def sids(policy: str) -> set[str]:
    return {statement["Sid"] for statement in json.loads(policy)["Statement"]}


def in_cloudfront(stack: Stack) -> dict[str, list[Any]]:
    client = stack.emulator.client("cloudfront")
    return {
        "distributions": client.list_distributions()["DistributionList"].get("Items", []),
        "functions": client.list_functions(Stage="LIVE")["FunctionList"].get("Items", []),
        "stores": client.list_key_value_stores()["KeyValueStoreList"].get("Items", []),
        "controls": client.list_origin_access_controls()["OriginAccessControlList"].get("Items", []),
    }


def readers(stack: Stack) -> set[str]:
    """The functions among SIGNERS and another that can read the key of the edge."""
    iam, functions = stack.emulator.client("iam"), stack.emulator.client("lambda")
    found = set()
    for name in (*SIGNERS, "PutArtifact"):
        made = functions.get_function_configuration(FunctionName=stack.physical(name))
        role = made["Role"].rpartition("/")[2]
        attached = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
        if any("ReadEdgeKey" in policy["PolicyName"] for policy in attached):
            found.add(name)
    return found


def test_without_the_option_nothing_of_it_is_deployed(cloud: DeployedCloud, stack: Stack) -> None:
    assert not stack.resources().keys() & OF_THE_EDGE
    assert not any(in_cloudfront(stack).values())
    assert not readers(stack)
    assert not any(name.startswith("Edge") for name in stack.outputs())
    assert "Edge" not in sids(cloud.bucket_policy)
    assert "X-Amz-Signature=" in address(cloud)


def test_with_the_option_it_is_deployed_and_changes_nothing_for_clients(cloud: DeployedCloud, stack: Stack) -> None:
    before = stack.resources()
    stack.deploy({**TRIAL, "Edge": "true"})
    assert stack.resources().keys() - before.keys() == OF_THE_EDGE
    counts = {kind: len(found) for kind, found in in_cloudfront(stack).items()}
    assert counts == {"distributions": 1, "functions": 2, "stores": 1, "controls": 1}
    assert readers(stack) == SIGNERS
    (distribution,) = in_cloudfront(stack)["distributions"]
    assert stack.outputs()["EdgeUrl"] == f"https://{distribution['DomainName']}"
    assert stack.outputs()["EdgeDistribution"] == distribution["Id"]
    s3, bucket = stack.emulator.client("s3"), stack.outputs()["ArtifactsBucket"]
    policy = s3.get_bucket_policy(Bucket=bucket)["Policy"]
    assert "Edge" in sids(policy)
    assert distribution["ARN"] in policy
    assert "X-Amz-Signature=" in address(cloud)


def test_an_update_without_it_deletes_all_of_it(cloud: DeployedCloud, stack: Stack) -> None:
    stack.deploy(TRIAL)
    assert not stack.resources().keys() & OF_THE_EDGE
    assert not any(in_cloudfront(stack).values())
    assert not readers(stack)
    s3, bucket = stack.emulator.client("s3"), stack.outputs()["ArtifactsBucket"]
    assert "Edge" not in sids(s3.get_bucket_policy(Bucket=bucket)["Policy"])
    assert "X-Amz-Signature=" in address(cloud)
