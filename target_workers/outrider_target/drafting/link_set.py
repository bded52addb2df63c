"""All links of a verifier, following the registry."""

from __future__ import annotations

import asyncio

from outrider_runtime.clock import Clock
from outrider_target.drafting.link import Link, LinkTools
from outrider_target.drafting.linked_worker import LinkedWorker
from outrider_wire.registry import DraftLinkStatus, Member, MemberKind, MemberState, Snapshot


class LinkSet:
    """One link per draft worker. Changed on the network's thread only; `statuses` may be called from any."""

    def __init__(self, tools: LinkTools, clock: Clock) -> None:
        self._tools = tools
        self._clock = clock
        self._links: dict[str, Link] = {}  # replaced, never changed, so that other threads may read it
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def update(self, snapshot: Snapshot) -> None:
        """Link to workers that appeared, leave those that drain or are gone.

        A worker that merely vanished from the registry keeps its link as long as that works: an open stream is better
        evidence than a registry that may have just restarted.
        """
        ready = {member.incarnation: member for member in snapshot.drafts()}
        by_address = {member.address: name for name, member in ready.items()}
        draining = _draining(snapshot)
        for name, link in self._links.items():
            link.retiring = name not in ready
            replaced = by_address.get(link.address, name) != name
            moved = name in ready and ready[name].address != link.address
            if moved or replaced or name in draining or (link.retiring and not link.is_ready):
                self._tasks[name].cancel()
        for name, member in ready.items():
            if name not in self._links:
                self._start(member)

    def wake_all(self) -> None:
        """Frames may wait on any link."""
        for link in self._links.values():
            link.wake()

    def statuses(self) -> tuple[DraftLinkStatus, ...]:
        """State of every link, by worker name."""
        links = self._links
        return tuple(links[name].status() for name in sorted(links))

    async def stop(self) -> None:
        """Close all links and wait until their tasks are gone."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, member: Member) -> None:
        assert member.draft is not None, f"draft member {member.incarnation} without a pool"
        name, draft = member.incarnation, member.draft
        worker = LinkedWorker(name, draft.pool, draft.max_sessions - draft.sessions, self._tools.settings, self._clock)
        link = Link(worker, member.address, self._tools)
        self._links = {**self._links, name: link}
        task = asyncio.create_task(link.run(), name=f"draft-link-{name}")
        self._tasks[name] = task
        task.add_done_callback(lambda _: self._forget(name))

    def _forget(self, name: str) -> None:
        self._links = {other: link for other, link in self._links.items() if other != name}
        del self._tasks[name]


def _draining(snapshot: Snapshot) -> frozenset[str]:
    return frozenset(
        member.incarnation
        for member in snapshot.members
        if member.kind is MemberKind.DRAFT and member.state is MemberState.DRAINING
    )
