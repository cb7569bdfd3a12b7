"""`larder install` with the permissions of deploy/deployer/template.yaml, which the emulator checks for every call.

It creates resources without checking permissions; tests/build/test_deployer.py compares those with the schemas.
"""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from local.template import ACCOUNT_ID, REGION
from tests.deployer import PLAN, POLICIES, Deployer
from tests.deploying import Account, Done, empty_account, obey

USER = "deployer"


@dataclass(frozen=True)
class User:
    """A user with the policies."""

    account: Account
    environ: Mapping[str, str]

    @classmethod
    def with_policies(cls, account: Account, name: str, policies: Sequence[str], stack: str = "larder-prod") -> "User":
        iam = account.client("iam")
        iam.create_user(UserName=name)
        given = {"StackName": stack, "ExistingBucket": "acme-build-cache"}
        deployer = Deployer(given, AccountId=ACCOUNT_ID, Region=REGION)
        for policy in policies:
            document = json.dumps(_known_to_the_emulator(deployer.document(policy)))
            made = iam.create_policy(PolicyName=f"{name}-{policy}", PolicyDocument=document)
            iam.attach_user_policy(UserName=name, PolicyArn=made["Policy"]["Arn"])
        key = iam.create_access_key(UserName=name)["AccessKey"]
        return cls(
            account,
            {
                "AWS_ACCESS_KEY_ID": key["AccessKeyId"],
                "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"],
                "AWS_REGION": REGION,
            },
        )

    def deploy(self, *arguments: str) -> Done:
        return self.account.deploy(*arguments, environ=self.environ)

    def deny(self, action: str) -> None:
        """Deny one action, in place of the one before."""
        denial = {"Effect": "Deny", "Action": [action], "Resource": ["*"]}
        self.account.client("iam").put_user_policy(
            UserName=USER,
            PolicyName="denial",
            PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [denial]}),
        )


def _known_to_the_emulator(document: Mapping[str, Any]) -> dict[str, Any]:
    """The policy without the condition on the names of change sets, which the emulator does not evaluate.

    tests/tools/test_deployer.py tests that condition.
    """
    statements = [
        {name: value for name, value in statement.items() if name != "Condition"}
        if "StringLike" in statement.get("Condition", {})
        else statement
        for statement in document["Statement"]
    ]
    return {**document, "Statement": statements}


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    """An administrator's plan has created the bucket for the code, which the user may not."""
    with empty_account(tmp_path) as account:
        user = User.with_policies(account, USER, POLICIES)
        first = user.deploy()
        assert "Let an administrator run `larder plan` once" in first.text, first.text
        assert account.larder("plan").status == 3
        # The bucket refuses requests without TLS, which the emulator does not have.
        s3 = account.client("s3")
        (bucket,) = s3.list_buckets()["Buckets"]
        s3.delete_bucket_policy(Bucket=bucket["Name"])
        yield user


def test_the_policies_suffice_to_create_and_update(user: User) -> None:
    created = user.deploy()
    assert created.status == 0, created.text
    assert user.account.is_protected()
    user.account.configure(Level="DEBUG")
    updated = user.deploy()
    assert updated.status == 0, updated.text
    assert user.account.note("Level") == "DEBUG"


def test_the_policies_suffice_to_clean_up_and_start_again(user: User) -> None:
    user.account.failing.write_text("2")
    assert user.deploy().status == 1
    assert (user.account.stack() or {})["StackStatus"] == "CREATE_FAILED"
    done = user.deploy()
    assert done.status == 0, done.text
    assert "It holds no data" in done.text


def test_the_policies_suffice_to_uninstall(user: User) -> None:
    assert user.deploy().status == 0
    program = Path(sys.executable).with_name("larder")
    given = ("--stack", "larder-prod", "--confirm", "larder-prod")
    done = user.account.run([program, "uninstall", *given], environ=user.environ)
    assert done.status == 0, done.text
    assert user.account.stack() is None


def test_they_do_not_suffice_for_another_stack(user: User) -> None:
    done = user.deploy("--stack", "orders")
    assert done.status != 0
    assert "not authorized to perform: cloudformation:" in done.text
    assert user.account.deploy("--stack", "orders").status == 0


def test_a_deployer_cannot_choose_what_another_stack_runs(user: User) -> None:
    assert user.deploy().status == 0
    other = User.with_policies(user.account, "other", POLICIES, "larder-dev")
    keys = (other.environ["AWS_ACCESS_KEY_ID"], other.environ["AWS_SECRET_ACCESS_KEY"])
    theirs = boto3.session.Session(*keys, region_name=REGION).client("s3", endpoint_url=user.account.emulator.url)
    bucket = f"larder-code-{ACCOUNT_ID}-{REGION}"
    stored = theirs.list_objects_v2(Bucket=bucket)["Contents"]
    for one in stored:
        assert one["Key"].startswith(("larder/larder-prod/", "larder-plans/larder-prod/"))
        with pytest.raises(theirs.exceptions.ClientError, match="AccessDenied"):
            theirs.put_object(Bucket=bucket, Key=one["Key"], Body=b"planted")
    for call in (theirs.delete_bucket_policy, theirs.get_bucket_policy):
        with pytest.raises(theirs.exceptions.ClientError, match="AccessDenied"):
            call(Bucket=bucket)
    done = other.deploy("--stack", "larder-dev")
    assert done.status == 0, done.text
    user.account.configure(Level="DEBUG")
    done = user.deploy()
    assert done.status == 0, done.text


def test_a_deployment_fails_without_any_of_its_own_actions(user: User) -> None:
    for action in (
        "cloudformation:DescribeStacks",
        "lambda:GetAccountSettings",
        "s3:PutObject",
        "cloudformation:CreateChangeSet",
        "cloudformation:DescribeChangeSet",
        "cloudformation:UpdateTerminationProtection",
        "cloudformation:ExecuteChangeSet",
    ):
        user.deny(action)
        done = user.deploy()
        assert done.status != 0, action
        assert action.partition(":")[2] in done.text, done.text
        assert "Traceback" not in done.text
    user.deny("ec2:RunInstances")
    done = user.deploy()
    assert done.status == 0, done.text


def test_they_suffice_to_check_an_existing_bucket_and_no_other(user: User) -> None:
    s3 = user.account.client("s3")
    for name in ("acme-build-cache", "acme-orders"):
        s3.create_bucket(Bucket=name)
    user.account.configure(ExistingBucket="acme-build-cache")
    obey(s3, user.deploy().text)
    # It refuses requests without TLS, which the emulator does not have. Those for objects are enough.
    policy = json.loads(s3.get_bucket_policy(Bucket="acme-build-cache")["Policy"])
    policy["Statement"][0]["Resource"] = "arn:aws:s3:::acme-build-cache/*"
    s3.put_bucket_policy(Bucket="acme-build-cache", Policy=json.dumps(policy))
    done = user.deploy()
    assert done.status == 0, done.text
    user.account.configure(ExistingBucket="acme-orders")
    refused = user.deploy()
    assert refused.status == 1
    assert "cannot check acme-orders" in refused.text


def test_a_pull_request_can_plan_and_not_deploy(user: User) -> None:
    created = user.deploy()
    assert created.status == 0, created.text
    user.account.configure(Level="DEBUG")
    planner = User.with_policies(user.account, "planner", PLAN)
    planned = user.account.larder("plan", environ=planner.environ)
    assert planned.status == 3, planned.text
    assert "Nothing has changed." in planned.text
    refused = user.account.larder("upgrade", "--yes", environ=planner.environ)
    assert refused.status == 1
    assert "cannot read the bucket larder-code-" in refused.text
    assert user.account.note("Level") == "INFO"
