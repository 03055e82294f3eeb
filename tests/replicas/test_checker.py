"""The history checker: a history that is right passes, and one with each kind of fault is found, by the name of the rule."""
import copy
import json
import struct

from kit import stored
from kit.history import ARTIFACT, INTERNAL, STATUS, TASK, Log, Op, Record, check_history
from lib.tap import check, each, same, test


class Run:
    def __init__(self, tool, key, fence=0):
        self.tool, self.key, self.fence = tool, key, fence


def status(seq, state, turn=1):
    return Record(seq, turn, STATUS, state, {"statusUpdate": {"status": {"state": "TASK_STATE_" + state}}})


def chunk(seq, text, append=True):
    return Record(seq, 1, ARTIFACT, None, {"artifactUpdate": {"artifact": {"artifactId": "a", "parts": [{"text": text}]}, **({"append": True} if append else {})}})


def internal(seq, kind, **more):
    return Record(seq, 1, INTERNAL, None, {"kind": "internal:" + kind, **more})


def created(seq=1, message="m1"):
    return Record(seq, 1, TASK, "SUBMITTED", {"task": {"id": "t", "status": {"state": "TASK_STATE_SUBMITTED"},
                                                         "history": [{"messageId": message, "role": "ROLE_USER"}]}})


def records():
    calls = {"messageId": "t-m1", "parts": [{"data": {"tool_calls": [{"call_id": "c1"}, {"call_id": "c2"}]}}]}
    return [created(), status(2, "WORKING"), internal(3, "message", message=calls), internal(4, "tool-start", toolCallId="c1"),
            internal(5, "tool-complete", toolCallId="c1"), chunk(6, "one ", False), chunk(7, "two"), status(8, "COMPLETED")]


END = ("COMPLETED", (("a", "one two"),))


def streamed(*seqs, at=1.0):
    by = {r.seq: r for r in records()}
    return [(s, by[s].value, at + s / 100) for s in seqs]


class World:
    """A history that is right; each test breaks it in one way."""

    def __init__(self):
        self.records, self.row = records(), {}
        self.messages, self.runs, self.once, self.is_over = [("m1", "t")], [Run("step", "t-t1-0", 1)], {"step"}, True
        self.ops = [
            Op("a", "stream", 1.0, 1.1, "unknown", task="t", after=None, records=streamed(1, 2, 6)),
            Op("a", "send", 1.0, 1.1, message="m1", task="t"),
            Op("b", "get", 1.2, 1.3, task="t", view=("WORKING", (("a", "one "),))),
            Op("a", "stream", 1.2, 1.4, task="t", after=6, records=streamed(7, 8, at=1.3), is_whole=True),
            Op("b", "get", 1.5, 1.6, task="t", view=END),
            Op("b", "cancel", 1.7, 1.8, "refused", task="t", error="TaskNotCancelable"),
            Op("a", "list", 1.7, 1.8, states={"t": "TASK_STATE_COMPLETED"}, must=["t"]),
            Op("c", "numbers", 1.0, 1.2, response="r", after=None, records=[(0, {"x": 0}), (1, {"x": 1})]),
            Op("d", "numbers", 1.3, 1.4, response="r", after=0, records=[(1, {"x": 1}), (2, {"x": 2})]),
            Op("e", "events", 1.3, 1.4, task="t", payloads=[p for _, p, _ in streamed(1, 2, 6)]),
            Op("e", "events", 1.4, 1.5, task="t", after=6, payloads=[p for _, p, _ in streamed(7, 8)]),
            Op("e", "text", 1.4, 1.5, task="t", protocol="A2A", text="one two", want="one two"),
        ]

    def found(self):
        logs = {"t": Log("t", self.records, agent="assistant", **self.row)} if self.records else {}
        return check_history(logs, self.ops, completes={"assistant"}, messages=self.messages, runs=self.runs,
                             once=self.once, is_over=self.is_over)

    def more(self, *of, **data):
        self.ops.append(Op(*of, **data))


@test("a history that is right has no violation")
def _():
    w = World()
    same(w.found(), [], "violations")
    w.runs += [Run("again", "t-t1-0", 2), Run("again", "t-t1-0", 1)]  # late, of a server that was stopped
    w.more("a", "get", 1.05, 1.9, task="t", view=("WORKING", ()))  # it began before the records were seen
    w.more("f", "send", 1.0, 1.1, "unknown", message="m2")
    w.more("f", "end", 1.0, 1.1, tag="m2", protocol="AG-UI", frames=[])
    w.more("f", "get", 1.0, 1.1, "refused", task="t9", error="TaskNotFound")
    w.more("f", "stream", 1.9, 2.0, task="t", after=None, snapshot=True, is_whole=True,
           records=[(8, {"task": {"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [{"artifactId": "a", "parts": [{"text": "one two"}]}]}}, 1.95)])
    same(w.found(), [], "violations")


def gap(w):
    del w.records[4]


def end(w):
    w.row["last_seq"] = 9


def row_state(w):
    w.row["state"] = "WORKING"


def behind_the_end(w):
    w.records.append(chunk(9, "more"))


def second_end(w):
    w.records.append(status(9, "FAILED"))


def back(w):
    w.records.insert(7, status(8, "SUBMITTED"))
    w.records[8] = status(9, "COMPLETED")


def failed(w):
    w.records[7] = status(8, "FAILED")
    w.ops = []


def turns(w):
    w.records[3].turn = 2


def stuck(w):
    w.records.pop()
    w.ops = w.ops[:1]


def lost_task(w):
    w.records, w.runs = [], []


def lost_end(w):
    w.records.pop()
    w.is_over, w.ops = False, w.ops[:5]


def result_twice(w):
    w.records.insert(5, internal(6, "tool-complete", toolCallId="c1"))


def message_twice(w):
    w.records[4] = internal(5, "message", message=w.records[2].value["message"])


def lost_message(w):
    w.records[0] = created(message="other")
    w.messages, w.ops = [], w.ops[1:2]


def two_tasks(w):
    w.messages.append(("m1", "t2"))


def ran_twice(w):
    w.runs.append(Run("step", "t-t1-0", 2))


def run_of_nothing(w):
    w.runs.append(Run("again", "t7-t1-0", 2))


def run_without_record(w):
    w.runs.append(Run("again", "t-t1-1", 1))


def fences(w):
    w.runs += [Run("again", "t-t1-0", 2), Run("again", "t-t1-0", 2)]


def own(w):
    w.more("a", "get", 1.45, 1.46, task="t", view=("WORKING", (("a", "one "),)))


def others(w):
    w.more("z", "get", 1.45, 1.46, task="t", view=("WORKING", (("a", "one "),)))


def own_in_list(w):
    w.more("a", "list", 1.9, 1.95, states={"t": "TASK_STATE_WORKING"})


def own_snapshot(w):
    w.more("a", "stream", 1.9, 1.95, task="t", after=None, snapshot=True, records=[(2, {"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}}, 1.94)])


def view(w):
    w.more("a", "get", 1.9, 1.95, task="t", view=("COMPLETED", (("a", "one one two"),)))


def snapshot(w):
    w.more("a", "stream", 1.9, 1.95, task="t", after=None, snapshot=True, records=[(8, {"task": {"id": "t", "status": {"state": "TASK_STATE_WORKING"}}}, 1.94)])


def not_found(w):
    w.more("a", "get", 1.9, 1.95, "refused", task="t", error="TaskNotFound")


def cancel_too_early(w):
    w.more("z", "cancel", 1.0, 1.01, "ok", task="t", view=("WORKING", ()))


def lost_cancel(w):
    w.more("z", "cancel", 1.9, 1.95, "ok", task="t", view=("CANCELED", ()))


def not_cancelable(w):
    w.records.pop()
    w.is_over, w.ops = False, []
    w.more("z", "cancel", 1.0, 1.01, "refused", task="t", error="TaskNotCancelable")


def not_listed(w):
    w.more("a", "list", 1.9, 1.95, states={}, must=["t"])


def repeats(w):
    w.more("z", "stream", 1.9, 1.95, task="t", after=6, records=streamed(6, 7))


def repeats_within(w):
    w.more("z", "stream", 1.9, 1.95, task="t", after=1, records=streamed(2, 6, 6))


def skips(w):
    w.more("z", "stream", 1.9, 1.95, task="t", after=2, records=streamed(7, 8))


def skips_first(w):
    w.more("z", "stream", 1.9, 1.95, task="t", after=None, records=streamed(2, 6))


def changed(w):
    records = copy.deepcopy(streamed(6, 7))
    records[1][1]["artifactUpdate"]["artifact"]["parts"][0]["text"] = "too"
    w.more("z", "stream", 1.9, 1.95, task="t", after=2, records=records)


def never_stored(w):
    w.more("z", "stream", 1.9, 1.95, task="t", after=8, records=[(9, chunk(9, "x").value, 1.94)])


def cut_stream(w):
    w.more("z", "stream", 1.9, 1.95, task="t", after=2, records=streamed(6), is_whole=True)


def number_skips(w):
    w.more("c", "numbers", 1.9, 2.0, response="r", after=0, records=[(2, {"x": 2})])


def number_repeats(w):
    w.more("c", "numbers", 1.9, 2.0, response="r", after=1, records=[(1, {"x": 1})])


def number_changed(w):
    w.more("c", "numbers", 1.9, 2.0, response="r", after=0, records=[(1, {"x": 7})])


def events_skip(w):
    w.more("c", "events", 1.9, 2.0, task="t", after=2, payloads=[p for _, p, _ in streamed(6, 8)])


def events_start(w):
    w.more("c", "events", 1.9, 2.0, task="t", payloads=[p for _, p, _ in streamed(2, 6)])


def text(w):
    w.more("c", "text", 1.9, 2.0, task="t", protocol="AG-UI", text="one one two", want="one two")


def false_end(w):
    w.more("c", "end", 1.9, 2.0, tag="m1", protocol="AG-UI", frames=["RUN_ERROR"])


def fault(w):
    w.more("c", "fault", 1.9, 2.0, text="id 3 after 4")


@each("found: {}", [
    ("a gap in the log", "log-gap", gap), ("a log that is shorter than its task's row says", "log-end", end), ("a row with another state", "row-state", row_state),
    ("a record behind the end of the task", "illegal-transition", behind_the_end), ("a second end", "illegal-transition", second_end),
    ("a task that is submitted again", "illegal-transition", back), ("a task that was not resumed", "not-completed", failed),
    ("turns that go back", "log-turns", turns), ("a task that works for ever", "stuck", stuck),
    ("an acknowledged task that is not stored", "lost-task", lost_task), ("a record that was shown and is not stored", "unknown-view", lost_end),
    ("two results of a call", "result-twice", result_twice), ("a message twice in a log", "message-twice", message_twice),
    ("an acknowledged message that is not stored", "lost-message", lost_message), ("a message that made two tasks", "message-in-two-tasks", two_tasks),
    ("a tool that ran twice", "ran-twice", ran_twice), ("a tool that ran for no task", "run-without-task", run_of_nothing),
    ("a tool that ran before its start was stored", "run-without-record", run_without_record), ("two runs of a call with one fence", "fence-twice", fences),
    ("a read that is older than what the client saw", "older-than-own", own), ("a read that is older than what another client saw before", "older-than-others", others),
    ("a list that is older than what the client saw", "older-than-own", own_in_list), ("a snapshot that is older than what the client saw", "older-than-own", own_snapshot),
    ("a Task that never was", "unknown-view", view), ("a snapshot that is not the Task at its cursor", "unknown-view", snapshot),
    ("an acknowledged task that is not found", "lost-task", not_found), ("a cancel that succeeds without effect", "cancel", cancel_too_early),
    ("a canceled task that is not canceled", "unknown-view", lost_cancel), ("a refused cancel of a task that works", "unknown-view", not_cancelable),
    ("a list without an acknowledged task", "not-listed", not_listed), ("a resumed stream that repeats", "cursor-repeats", repeats),
    ("a stream that repeats", "cursor-repeats", repeats_within), ("a resumed stream that skips", "cursor-skips", skips),
    ("a stream that skips its start", "cursor-skips", skips_first), ("a record that is not as it was stored", "changed-record", changed),
    ("a record that was never stored", "lost-record", never_stored), ("a stream that ends too early", "cut-stream", cut_stream),
    ("events of a response with a gap", "cursor-skips", number_skips), ("events of a response that repeat", "cursor-repeats", number_repeats),
    ("an event of a response that is another one later", "changed-record", number_changed), ("events without cursors, with a gap", "cursor-skips", events_skip),
    ("events without cursors, without the first", "cursor-skips", events_start), ("a text that is there twice", "text", text), ("a failure that was shown and never was", "false-end", false_end),
    ("a broken protocol", "protocol", fault)])
def _(rule, destroy):
    w = World()
    destroy(w)
    found = w.found()
    check(any(v.rule == rule for v in found), f"wanted {rule}, found {found}")
    check(len({v.rule for v in found}) <= 3, f"too much: {found}")


@test("a cancel that the log lost is found although the view exists")
def _():
    w = World()
    w.records[7:] = [status(8, "CANCELED"), status(9, "COMPLETED")]
    w.ops = []
    w.more("z", "cancel", 1.9, 1.95, "ok", task="t", view=("CANCELED", (("a", "one two"),)))
    same(sorted({v.rule for v in w.found()}), ["illegal-transition", "lost-cancel"], "rules")


@test("of several possible positions of a read the lowest counts")
def _():
    w = World()
    w.records.insert(2, status(3, "WORKING"))
    for i, r in enumerate(w.records):
        r.seq = i + 1
    w.ops = []
    w.more("a", "get", 1.0, 1.1, task="t", view=("WORKING", ()))
    w.more("b", "stream", 1.2, 1.3, task="t", after=None, records=[(1, w.records[0].value, 1.25), (2, w.records[1].value, 1.26)])
    same(w.found(), [], "violations")


@test("rows of the log are read as the store writes them")
def _():
    values = [{"task": {"id": "t", "status": {"state": "TASK_STATE_SUBMITTED"}}}, {"kind": "internal:usage"}]
    row = b"\x01" + bytes(8)
    for i, v in enumerate(values):
        data = json.dumps(v).encode()
        row += struct.pack("<IIQBB", len(data), 1, 1000, (TASK, INTERNAL)[i], (1, 0)[i]) + data
    same([(r.seq, r.turn, r.kind, r.state, r.value) for r in stored.records_of(5, row)],
         [(5, 1, TASK, "SUBMITTED", values[0]), (6, 1, INTERNAL, None, values[1])], "records")


@test("a schedule that does not end is a fault")
def _():
    import test_schedules
    limit, test_schedules.LIMIT = test_schedules.LIMIT, 0.01
    try:
        fault = test_schedules.run_one(1)
    finally:
        test_schedules.LIMIT = limit
    check(fault and "--seed 1: no end" in fault, fault)
