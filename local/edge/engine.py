"""The functions of the edge in QuickJS, with what CloudFront's runtime offers them.

The code is the template's. Its imports are replaced by stand-ins: `cf.kvs()` reads the local store, and
`crypto.createHmac` is Python's.

Source: https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/functions-javascript-runtime-20.html
"""

from __future__ import annotations

import base64
import hmac
import json
import re
from collections.abc import Callable
from typing import Any

import quickjs

IMPORTS = ("import cf from 'cloudfront';", "import crypto from 'crypto';")
"""The only imports that the functions may have."""

MEMORY_BYTES = 2 * 2**20
"""What CloudFront allows a function."""

Read = Callable[[str], str | None]
Event = dict[str, Any]

_IMPORT = re.compile(r"^import .*$", re.MULTILINE)
_RUNTIME = """
const console = { log: function () {} };
const crypto = {
  createHmac: function (algorithm, key) {
    let text = '';
    const hmac = {
      update: function (more) { text += more; return hmac; },
      digest: function (encoding) { return hmacOf(algorithm, key, text, encoding); },
    };
    return hmac;
  },
};
const cf = {
  kvs: function () {
    return {
      get: function (name) {
        const value = storedUnder(name);
        return value === null ? Promise.reject(new Error('KeyNotFound')) : Promise.resolve(value);
      },
    };
  },
};
"""
_CALL = """
let outcome = '';
function callHandler(event) {
  outcome = '';
  Promise.resolve(JSON.parse(event)).then(handler).then(
    function (result) { outcome = JSON.stringify({ result: result }); },
    function (error) { outcome = JSON.stringify({ error: String(error) }); });
}
function takeOutcome() { return outcome; }
"""


class FunctionError(Exception):
    """The function raised an error. CloudFront replies 503 then."""


class EdgeFunction:
    """One function of the edge. Use it in one thread."""

    def __init__(self, code: str, read: Read) -> None:
        """`read` returns a value of the store. Raises FunctionError if the code imports anything else."""
        if unknown := set(_IMPORT.findall(code)) - set(IMPORTS):
            raise FunctionError(f"the runtime has no such module: {', '.join(sorted(unknown))}")
        self._context = quickjs.Context()
        self._context.set_memory_limit(MEMORY_BYTES)
        self._context.add_callable("hmacOf", _hmac)
        self._context.add_callable("storedUnder", read)
        self._context.eval(_RUNTIME + _IMPORT.sub("", code) + _CALL)
        self._call = self._context.get("callHandler")
        self._outcome = self._context.get("takeOutcome")

    def __call__(self, event: Event) -> Event:
        """What the handler returns for the event. Raises FunctionError."""
        self._call(json.dumps(event))
        while self._context.execute_pending_job():
            pass
        outcome = json.loads(self._outcome() or '{"error": "the handler never replies"}')
        if "result" not in outcome:
            raise FunctionError(outcome.get("error", "the handler returns nothing"))
        result: Event = outcome["result"]
        return result


def _hmac(algorithm: str, key: str, text: str, encoding: str) -> str:
    digest = hmac.digest(key.encode(), text.encode(), algorithm)
    if encoding == "base64url":
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
    if encoding == "base64":
        return base64.b64encode(digest).decode()
    return digest.hex()
