"""Codes in place of turbo's digests of values.

turbo's digest of a value is the same in every repository, so anyone who reads it can try likely values. A code is a
keyed hash with the team's random key, which no reply has.
"""

import hmac
from collections.abc import Mapping
from typing import Any

from larder.teams.models import RunInputs
from larder.why.summaries import SET

SOME_VALUE = "0" * 64
"""In place of turbo's digest of a value, from clients that send only names: the variable has a value."""

_CODE = 12
"""The characters of a code."""


def coded(report: Mapping[str, Any], *, key: str, kept: RunInputs) -> dict[str, Any]:
    """The report as it is stored: with codes in place of the digests of values, commands, arguments and engines.

    If the client sent only names, only those are kept.
    """
    inputs = report["inputs"]
    shared = inputs["global"]
    if any(SOME_VALUE in one["env"].values() for one in (shared, *inputs["tasks"])):
        kept = RunInputs.NAMES
    codes = _Codes(key, kept)
    return {
        **report,
        "kept": kept.value,
        "inputs": {
            **inputs,
            "global": {
                **shared,
                "env": codes.of_variables(shared["env"]),
                "engines": codes.of_text("engines", shared["engines"]),
            },
            "tasks": [
                {
                    **task,
                    "env": codes.of_variables(task["env"]),
                    "script": codes.of_text("script", task["script"]),
                    "arguments": codes.of_text("arguments", task["arguments"]),
                }
                for task in inputs["tasks"]
            ],
        },
    }


def comparable(
    run: Mapping[str, Any], base: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Two stored reports. If only one has codes of values, both are compared by names."""
    if run["kept"] == base["kept"]:
        return run, base
    return _names_only(run), _names_only(base)


def _names_only(report: Mapping[str, Any]) -> dict[str, Any]:
    inputs = report["inputs"]
    tasks = [{**task, "env": _set(task["env"])} for task in inputs["tasks"]]
    shared = {**inputs["global"], "env": _set(inputs["global"]["env"])}
    return {**report, "inputs": {**inputs, "global": shared, "tasks": tasks}}


def _set(codes: Mapping[str, str]) -> dict[str, str]:
    return {name: SET if code else "" for name, code in codes.items()}


class _Codes:
    def __init__(self, key: str, kept: RunInputs) -> None:
        self._key = bytes.fromhex(key)
        self._kept = kept
        self._known: dict[tuple[str, str, str], str] = {}

    def of_variables(self, digests: Mapping[str, str]) -> dict[str, str]:
        """An empty value has no digest, and no code."""
        if self._kept is RunInputs.NAMES:
            return _set(digests)
        return {name: self._code("env", name, digest) for name, digest in digests.items()}

    def of_text(self, kind: str, digest: str) -> str:
        return self._code(kind, "", digest)

    def _code(self, kind: str, name: str, digest: str) -> str:
        if not digest:
            return ""
        known = self._known.get((kind, name, digest))
        if known is None:
            text = f"{kind}\0{name}\0{digest}".encode()
            known = hmac.digest(self._key, text, "sha256").hex()[:_CODE]
            self._known[kind, name, digest] = known
        return known
