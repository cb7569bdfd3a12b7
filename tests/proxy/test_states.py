"""What a tool reads through a sidecar while other jobs store, replace and delete at any time."""

from __future__ import annotations

import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from larder_proxy.memory import AHEAD_SECONDS, State

from .deployment import Deployment, deployed, sidecar

HASHES = st.sampled_from([f"{number:016x}" for number in range(3)])


class Entries(RuleBasedStateMachine):
    """`held` has the bytes that each artifact may have, and `missed` those that the tool has missed."""

    @initialize(room=st.sampled_from([0, 400_000, 10_000_000]))
    def begin(self, room: int) -> None:
        self.stack = ExitStack()
        self.deployment: Deployment = self.stack.enter_context(deployed())
        self.deployment.room = room
        folder = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        self.running = self.stack.enter_context(sidecar(self.deployment, folder))
        listener = self.running.sidecar.listener
        headers = {"Authorization": f"Bearer {listener.token}"}
        # The sidecar holds a tool back for eight seconds.
        client = httpx.Client(base_url=listener.url, headers=headers, trust_env=False, timeout=30)
        self.tool = self.stack.enter_context(client)
        self.held: dict[str, set[bytes]] = {}
        self.own: set[str] = set()
        """What this sidecar has stored, and no other job has deleted since."""
        self.missed: set[str] = set()
        self.number = 0

    def content(self, size: int) -> bytes:
        self.number += 1
        return f"{self.number:04d}".encode() * size

    @rule(hash=HASHES, size=st.sampled_from([1, 20_000, 60_000]))
    def another_job_stores(self, hash: str, size: int) -> None:
        content = self.content(size)
        self.held.setdefault(hash, set()).add(content)
        self.deployment.artifacts[hash] = content

    @rule(hash=HASHES)
    def another_job_deletes(self, hash: str) -> None:
        self.running.uploaded()
        self.deployment.artifacts.pop(hash, None)
        self.own.discard(hash)

    @rule(hash=HASHES, size=st.sampled_from([1, 20_000, 60_000]), failures=st.integers(0, 2))
    def the_tool_stores(self, hash: str, size: int, failures: int) -> None:
        content = self.content(size)
        self.deployment.failing["PUT"] = [(503, "unavailable")] * failures
        is_alone = not failures and not self.running.sidecar.cache.is_uploading
        assert self.tool.put(f"/v8/artifacts/{hash}", content=content).status_code == 202
        # What has no room goes through without another try, and not past an older one.
        if is_alone or self.deployment.room > 10**6:
            self.own.add(hash)
            self.held[hash] = {content}
        else:
            self.own.discard(hash)
            self.held.setdefault(hash, set()).add(content)
        self.missed.discard(hash)

    @rule(hash=HASHES)
    def the_tool_looks(self, hash: str) -> None:
        there = self.deployment.artifacts.get(hash)
        known = self.running.sidecar.cache.memory.is_missing((hash, ""))
        reply = self.tool.get(f"/v8/artifacts/{hash}")
        if reply.status_code == 200:
            assert reply.content in self.held[hash]
            self.missed.discard(hash)
            return
        assert reply.status_code == 404
        assert hash not in self.own, "what it stored is missed"
        assert there is None or known, "what is there is missed"
        self.missed.add(hash)

    @rule(hashes=st.sets(HASHES, min_size=1))
    def turbo_is_expected(self, hashes: set[str]) -> None:
        self.running.sidecar.cache.prefetch.expect(sorted(hashes))

    @rule(hash=HASHES, size=st.sampled_from([1, 60_000]))
    def the_tool_stores_again_before_the_upload_ends(self, hash: str, size: int) -> None:
        self.the_tool_stores(hash, size, 1)
        self.the_tool_stores(hash, size, 0)
        self.the_tool_looks(hash)

    @rule(hash=HASHES)
    def the_tool_stores_what_is_held(self, hash: str) -> None:
        self.another_job_stores(hash, 1)
        self.turbo_is_expected({hash})
        time.sleep(0.05)
        self.the_tool_stores(hash, 1, 0)
        self.the_tool_looks(hash)

    @rule()
    def uploads_end(self) -> None:
        self.running.uploaded()

    @rule(hash=HASHES)
    def another_job_stores_and_time_passes(self, hash: str) -> None:
        """What was learned before the tool asked counts no longer."""
        self.another_job_stores(hash, 1)
        time.sleep(AHEAD_SECONDS)
        if hash not in self.missed:
            reply = self.tool.get(f"/v8/artifacts/{hash}")
            assert reply.status_code == 200
            assert reply.content in self.held[hash]

    @invariant()
    def what_is_held_is_counted(self) -> None:
        memory = self.running.sidecar.cache.memory
        with memory.freed:
            held = [entry.held for entry in memory._entries.values() if entry.state is State.HELD]
            assert sum(one.size for one in held if one is not None) == memory.held_bytes

    def teardown(self) -> None:
        if hasattr(self, "stack"):
            self.running.uploaded()
            self.stack.close()


TestEntries = Entries.TestCase
TestEntries.settings = settings(
    max_examples=7 * int(os.environ.get("MACHINE_ROUNDS") or 1),
    stateful_step_count=15,
    deadline=None,
    # Threads take another time in each run.
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
