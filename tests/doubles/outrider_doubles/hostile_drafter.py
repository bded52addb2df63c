"""A draft worker over real gRPC whose answers are lies. Everything else about it is a well-behaved server."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import grpc

from outrider.v1.draft_pb2 import SpeculateRequest
from outrider_doubles.lies import HangUp, Lie, honest
from outrider_doubles.strict_worker import Proposer, StrictWorker, count_up
from outrider_wire.channel import KEEPALIVE_TIME_MS
from outrider_wire.draft_codec import speculate_response_from, verifier_frame_from
from outrider_wire.drafting import PROTOCOL_VERSION, DrafterFrame, DrafterRound, Hello, VerifierRound
from outrider_wire.registry import DraftMember, Member, MemberKind, MemberState

_OPTIONS = (
    ("grpc.max_send_message_length", -1),
    # As on every server of ours: it must bear the keepalive of the links.
    ("grpc.http2.min_recv_ping_interval_without_data_ms", KEEPALIVE_TIME_MS // 2),
)


@dataclass(frozen=True)
class DrafterFacts:
    """What the worker says of itself."""

    incarnation: str = "drafter"
    pool: str = "pool"
    tokenizer_fingerprint: str = "f" * 64
    vocab_size: int = 1000
    protocol_version: int = PROTOCOL_VERSION


class HostileDrafter:
    """Serves `DraftService` on a free local port until stopped; use it as a context manager.

    Speaks raw bytes, so that it can send what no encoder would.

    Args:
        lie: what it makes of its honest answers; may be changed at any time.
        facts: what it says of itself.
        propose: its honest proposals.
    """

    def __init__(self, lie: Lie = honest, facts: DrafterFacts | None = None, propose: Proposer = count_up) -> None:
        self.lie = lie
        self.facts = facts or DrafterFacts()
        self.slips: list[Exception] = []
        """What the verifier did against the protocol. A test that ends with any has found a fault of the verifier."""
        self._propose = propose
        self._workers: list[StrictWorker] = []
        self._threads = ThreadPoolExecutor(8)
        self._server = grpc.server(self._threads, options=_OPTIONS)
        handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_stream_rpc_method_handler(self._speculate)
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler("outrider.v1.DraftService", {"Speculate": handler}),)
        )
        self._port = self._server.add_insecure_port("127.0.0.1:0")

    def __enter__(self) -> HostileDrafter:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop(grace=None).wait()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def member(self) -> Member:
        """This worker as the registry would list it."""
        facts = self.facts
        draft = DraftMember(facts.pool, "hostile", sessions=0, max_sessions=100)
        address = f"127.0.0.1:{self._port}"
        return Member(facts.incarnation, MemberKind.DRAFT, MemberState.READY, address, "node", 1, draft)

    @property
    def session_count(self) -> int:
        """Sessions that verifiers hold open here, over all live streams."""
        return sum(len(worker.sessions) for worker in list(self._workers))

    def _speculate(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        worker = StrictWorker(self._propose)
        self._workers.append(worker)
        try:
            for request in requests:
                frame = verifier_frame_from(SpeculateRequest.FromString(request))
                if isinstance(frame, Hello):
                    yield _encoded(self._hello())
                    continue
                for saying in self.lie(frame, self._answer(worker, frame)):
                    yield saying if isinstance(saying, bytes) else _encoded(saying)
        except HangUp:
            context.abort(grpc.StatusCode.UNAVAILABLE, "hung up")
        finally:
            self._workers.remove(worker)

    def _answer(self, worker: StrictWorker, frame: VerifierRound) -> DrafterRound:
        try:
            return worker.apply(frame)
        except Exception as slip:
            self.slips.append(slip)
            raise

    def _hello(self) -> Hello:
        facts = self.facts
        return Hello(
            protocol_version=facts.protocol_version,
            tokenizer_fingerprint=facts.tokenizer_fingerprint,
            vocab_size=facts.vocab_size,
            incarnation=facts.incarnation,
            pool=facts.pool,
            method="hostile",
        )


def _encoded(frame: DrafterFrame) -> bytes:
    return bytes(speculate_response_from(frame).SerializeToString())
