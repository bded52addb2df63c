"""Simulated gateways: each sees targets as they were a heartbeat ago, and chooses by the live rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack

from outrider_cluster.gateway.admission import Admission
from outrider_cluster.gateway.target_choice import affinity_key, choose_target
from outrider_cluster.simulator.gateway_settings import Gateways
from outrider_cluster.simulator.request import Request
from outrider_cluster.simulator.routing import Answering
from outrider_cluster.simulator.target import Target
from outrider_runtime.clock import Clock
from outrider_runtime.errors import Overloaded
from outrider_wire.registry import Member, Snapshot


class Call:
    """A request in one gateway's hands."""

    __slots__ = ("lost", "member", "moves", "permit", "request", "waits_since_s")

    def __init__(self, request: Request, permit: ExitStack) -> None:
        self.request = request
        self.permit = permit
        self.member: Member | None = None
        """Where it is."""
        self.moves = 0
        self.lost: set[str] = set()
        """Targets that lost it."""
        self.waits_since_s: float | None = None
        """Since when no target is ready for it."""


class Gateway:
    """One gateway. Its view of targets is remote truth that may be old.

    Args:
        number: names it.
        settings: of all gateways.
        clock: simulated time.
    """

    def __init__(self, number: int, settings: Gateways, clock: Clock) -> None:
        self.name = f"gateway-{number}"
        self.is_up = True
        self.is_draining = False
        self.max_in_flight = settings.max_in_flight
        self.admission = Admission(settings.max_in_flight, on_change=lambda _: None)
        self.calls: dict[int, Call] = {}
        """By request key."""
        self._settings = settings
        self._clock = clock
        self._targets: Sequence[Member] = ()
        self._in_flight: Counter[str] = Counter()
        self._lost_at_s: dict[str, float] = {}

    def hear(self, snapshot: Snapshot) -> None:
        """The controller's answer to a heartbeat."""
        self._targets = snapshot.targets()
        known = {member.incarnation for member in snapshot.members}
        self._lost_at_s = {name: at_s for name, at_s in self._lost_at_s.items() if name in known}

    def admit(self, request: Request) -> Call:
        """Hold room for a request.

        Raises:
            Overloaded: there is none.
        """
        permit = ExitStack()
        permit.enter_context(self.admission.admit(1))
        call = self.calls[request.key] = Call(request, permit)
        return call

    def choose(self, call: Call) -> Member | None:
        """The target that it believes to be best, or None if it knows of none."""
        now_s, suspicion_s = self._clock.now_s(), self._settings.suspicion_s
        suspects = {name for name, at_s in self._lost_at_s.items() if now_s - at_s < suspicion_s}
        candidates = self._targets
        if tried := call.lost & suspects:
            candidates = [member for member in candidates if member.incarnation not in tried]
        affinity = affinity_key(str(call.request.key), "", ())
        return choose_target(candidates, self._in_flight, suspects, affinity, self._settings.affinity_slack)

    def place(self, call: Call, member: Member) -> None:
        """A call goes to a target."""
        call.member, call.waits_since_s = member, None
        self._in_flight[member.incarnation] += 1

    def leave(self, call: Call) -> bool:
        """The target of a call turned out to be lost. Whether the call may go on elsewhere."""
        member = call.member
        assert member is not None
        self._lost_at_s[member.incarnation] = self._clock.now_s()
        call.lost.add(member.incarnation)
        self._take_off(call)
        call.moves += 1
        return call.moves <= self._settings.max_moves

    def end(self, call: Call) -> None:
        """A call is over."""
        self._take_off(call)
        call.permit.close()
        del self.calls[call.request.key]

    def _take_off(self, call: Call) -> None:
        if call.member is not None:
            self._in_flight[call.member.incarnation] -= 1
            if not self._in_flight[call.member.incarnation]:
                del self._in_flight[call.member.incarnation]
            call.member = None


class GatewayTier:
    """All gateways: a `Router`. Clients come to those that are up in turn.

    Args:
        settings: of the scenario.
        clock: simulated time.
        find: the target of that name, if it is up.
        answering: takes what was decided.
    """

    def __init__(
        self, settings: Gateways, clock: Clock, find: Callable[[str], Target | None], answering: Answering
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._find = find
        self._answering = answering
        self._of: dict[int, Gateway] = {}
        self._next = self._made = 0
        self.gateways: list[Gateway] = []
        for _ in range(settings.count):
            self.add()

    def add(self) -> Gateway:
        """One more gateway."""
        gateway = Gateway(self._made, self._settings, self._clock)
        self._made += 1
        self.gateways.append(gateway)
        return gateway

    def remove(self, gateway: Gateway) -> None:
        """A gateway is one too many; whatever it still holds is lost."""
        self.crash(gateway)
        self.gateways.remove(gateway)

    def enter(self, request: Request) -> None:
        """A client sends it to the next gateway; without any that is up it fails."""
        gateway = self._turn()
        if gateway is None:
            self._answering.fail(request)
            return
        try:
            call = gateway.admit(request)
        except Overloaded:
            self._answering.refuse(request)
            return
        self._of[request.key] = gateway
        self._send(gateway, call)

    def lost(self, target: Target, requests: Iterable[Request]) -> None:
        """Their gateways send them elsewhere, from what was committed."""
        for request in requests:
            gateway = self._of[request.key]
            self._move(gateway, gateway.calls[request.key])

    def done(self, request: Request) -> None:
        """It has its answer, or was given up: there is room for another one."""
        gateway = self._of.pop(request.key, None)
        if gateway is not None:
            gateway.end(gateway.calls[request.key])

    def update(self, target: Target) -> None:
        """Gateways hear of it with their next heartbeat."""

    def hear(self, gateway: Gateway, snapshot: Snapshot) -> None:
        """A heartbeat was answered: what waits for a target looks again, and gives up after a time."""
        gateway.hear(snapshot)
        now_s = self._clock.now_s()
        for call in [call for call in gateway.calls.values() if call.waits_since_s is not None]:
            self._send(gateway, call)
            if call.waits_since_s is not None and now_s - call.waits_since_s >= self._settings.target_wait_s:
                self._answering.fail(call.request)

    def crash(self, gateway: Gateway) -> None:
        """Connections break: all that it holds is lost, and targets stop working on it."""
        gateway.is_up = False
        for call in list(gateway.calls.values()):
            if call.member is not None and (target := self._find(call.member.incarnation)) is not None:
                target.cancel(call.request)
            call.request.is_cancelled = True
            self._answering.fail(call.request)

    def _turn(self) -> Gateway | None:
        serving = [gateway for gateway in self.gateways if gateway.is_up and not gateway.is_draining]
        if not serving:
            return None
        self._next += 1
        return serving[self._next % len(serving)]

    def _move(self, gateway: Gateway, call: Call) -> None:
        if gateway.leave(call):
            self._send(gateway, call)
        else:
            self._answering.fail(call.request)

    def _send(self, gateway: Gateway, call: Call) -> None:
        """To the target that the gateway believes to be best; one that is not there any more is noticed at once."""
        member = gateway.choose(call)
        if member is None:
            if call.waits_since_s is None:
                call.waits_since_s = self._clock.now_s()
            return
        gateway.place(call, member)
        target = self._find(member.incarnation)
        if target is None:
            self._move(gateway, call)
        else:
            self._answering.deliver(call.request, target)
