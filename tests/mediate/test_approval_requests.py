from __future__ import annotations

from sigwrap.approve.requests import Answer, ApprovalRequest, OpenRequest, RequestQueue, Verdict


def question(what: str = "git push", key: str = "git push") -> ApprovalRequest:
    return ApprovalRequest(
        kind="exec",
        pid=7,
        process="bash",
        depth=1,
        what=what,
        rule="ask-push",
        message="",
        key=(key,),
    )


class Queue(RequestQueue):
    """Numbers the requests."""

    def __init__(self, timeout_s: float = 10.0) -> None:
        super().__init__(timeout_s)
        self._ids = iter(range(1, 1_000_000))

    def open_for(
        self, asked: ApprovalRequest, now_s: float = 0.0, *, for_next: bool = False
    ) -> OpenRequest:
        return self.ask(f"r{next(self._ids)}", asked, now_s, for_next=for_next)


def settle(found: object) -> list[tuple[str, bool, str]]:
    assert isinstance(found, tuple)
    return [(each.id, each.answer.granted, each.answer.reason) for each in found]


def say(subject: RequestQueue, approval_id: str, verdict: Verdict, now_s: float = 1.0) -> object:
    return subject.answer(approval_id, verdict, by="ann", message="not now", now_s=now_s)


def test_yes_is_for_this_request_only() -> None:
    subject = Queue()
    first, second = subject.open_for(question(), 0.0), subject.open_for(question(), 0.0)
    assert settle(say(subject, first.id, Verdict.ONCE)) == [("r1", True, "granted")]
    assert [each.id for each in subject.open] == [second.id]
    assert subject.settle_from_memory(second.id, 1.0) is None


def test_always_covers_what_waits_and_what_comes_with_the_same_key() -> None:
    subject = Queue()
    for key in ("push", "rm", "push"):
        subject.open_for(question(key=key), 0.0)
    assert settle(say(subject, "r3", Verdict.ALWAYS)) == [
        ("r3", True, "granted"),
        ("r1", True, "granted"),
    ]
    later = subject.open_for(question(key="push"), 2.0)
    from_memory = subject.settle_from_memory(later.id, 2.0)
    assert from_memory is not None
    assert (from_memory.answer.granted, from_memory.answer.by, from_memory.always) == (
        True,
        "ann",
        True,
    )
    assert subject.settle_from_memory("r2", 2.0) is None


def test_always_needs_a_key_and_an_event() -> None:
    subject = Queue()
    for _ in range(2):
        subject.open_for(question()._replace(key=()), 0.0)
    assert settle(say(subject, "r1", Verdict.ALWAYS)) == [("r1", True, "granted")]
    assert [each.id for each in subject.open] == ["r2"]
    assert subject.settle_from_memory("r2", 1.0) is None
    subject = Queue()
    subject.open_for(question(), 0.0)
    say(subject, "r1", Verdict.ALWAYS)
    subject.forget_always(question())
    assert subject.settle_from_memory(subject.open_for(question(), 1.0).id, 1.0) is None


def test_an_answer_after_the_timeout_is_told_so() -> None:
    subject = Queue(timeout_s=10.0)
    subject.open_for(question(), 0.0)
    subject.open_for(question(), 5.0)
    assert settle(subject.expire(9.9)) == []
    assert settle(subject.expire(10.0)) == [("r1", False, "expired")]
    assert say(subject, "r1", Verdict.ONCE, now_s=11.0) == ()
    assert subject.how_settled("r1") == "expired by sigwrap"
    assert settle(subject.expire(15.0)) == [("r2", False, "expired")]


def test_an_answer_that_comes_too_late_or_to_nothing_is_told_so() -> None:
    subject = Queue()
    subject.open_for(question(), 0.0)
    say(subject, "r1", Verdict.NO)
    assert say(subject, "r1", Verdict.ONCE) == ()
    assert subject.how_settled("r1") == "denied by ann"
    assert say(subject, "r9", Verdict.ONCE) == ()
    assert subject.how_settled("r9") == ""


def test_a_request_is_withdrawn_once_and_where_nobody_can_be_asked_the_answer_is_no() -> None:
    subject = Queue()
    subject.open_for(question(), 0.0)
    [settled] = subject.refuse("r1", "gone", 1.0, "withdrawn")
    assert (settled.answer.reason, settled.waited_s) == ("withdrawn", 1.0)
    assert subject.refuse("r1", "gone", 1.0, "withdrawn") == ()
    assert subject.open == ()
    subject = Queue()
    subject.open_for(question(), 0.0)
    [settled] = subject.refuse("r1", "no terminal", 0.5)
    assert settled.answer == Answer(
        granted=False, by="sigwrap", message="no terminal", reason="nobody"
    )
    assert subject.open == ()


def test_ids_of_open_and_settled_requests_are_known() -> None:
    subject = Queue()
    subject.open_for(question())
    say(subject, subject.open_for(question()).id, Verdict.ONCE)
    assert [subject.is_known(each) for each in ("r1", "r2", "r3")] == [True, True, False]


def test_what_is_remembered_of_settled_requests_is_bounded() -> None:
    subject = Queue()
    for _ in range(3_000):
        say(subject, subject.open_for(question(), 0.0).id, Verdict.NO)
    assert (subject.how_settled("r2000"), subject.how_settled("r2001")) == ("", "denied by ann")


def test_an_approval_for_the_next_attempt_is_for_that_process_once_and_in_time() -> None:
    subject = Queue()
    kept = subject.open_for(question(), 0.0, for_next=True)
    assert subject.kept_for_next(question()) == kept
    say(subject, kept.id, Verdict.ONCE)
    for pid, execs, is_granted in ((8, 0, False), (7, 1, False), (7, 0, True), (7, 0, False)):
        attempt = question()._replace(pid=pid, execs=execs)
        assert subject.is_remembered(attempt) == is_granted
        asked = subject.open_for(attempt, 2.0)
        found = subject.settle_from_memory(asked.id, 2.0)
        assert (found is not None and found.answer.granted) == is_granted
    kept = subject.open_for(question(), 0.0, for_next=True)
    say(subject, kept.id, Verdict.ONCE)
    late = subject.open_for(question(), 11.0)
    assert subject.settle_from_memory(late.id, 11.0) is None


def test_what_is_kept_for_a_process_ends_with_it_and_is_bounded() -> None:
    subject = Queue()
    kept = subject.open_for(question(), 0.0, for_next=True)
    approved = subject.open_for(question(key="other"), 0.0, for_next=True)
    say(subject, approved.id, Verdict.ONCE)
    assert subject.kept_of(8) == []
    assert subject.kept_of(7) == [kept.id]
    assert not subject.is_remembered(question(key="other"))
    for number in range(7):
        assert subject.keeps_more()
        subject.open_for(question(key=str(number)), 0.0, for_next=True)
    assert not subject.keeps_more()
