"""What clients did and saw, and the check of it against one order: the log of each task.

A history is a list of operations. Each has the client, the start and the end (one clock), and what came back. Afterwards the logs
are read from the database. They are the order; every view of every client must fit it. `check_history` returns what does not.

The position of a view is the number of records of the log that it contains. Views with an equal content have several: the check takes
the lowest one that is possible, so it never reports a history that could be right.
"""
import bisect
import json

TERMINAL = {"COMPLETED", "FAILED", "CANCELED", "REJECTED"}
RESTING = TERMINAL | {"INPUT_REQUIRED", "AUTH_REQUIRED"}
STATES = {1: "SUBMITTED", 2: "WORKING", 3: "COMPLETED", 4: "FAILED", 5: "CANCELED", 6: "INPUT_REQUIRED", 7: "REJECTED", 8: "AUTH_REQUIRED"}
TASK, MESSAGE, STATUS, ARTIFACT, INTERNAL = 1, 2, 3, 4, 5


def plain_state(state):
    return (state or "").removeprefix("TASK_STATE_")


class Violation:
    def __init__(self, rule, task, text):
        self.rule, self.task, self.text = rule, task, text

    def __repr__(self):
        return f"{self.rule}: {self.task or '-'}: {self.text}"


# ---- the order ---------------------------------------------------------------------------------------------------------

class Record:
    def __init__(self, seq, turn, kind, state, value, time=0):
        self.time = time  # milliseconds, of the server that wrote it
        self.seq, self.turn, self.kind, self.state, self.value = seq, turn, kind, STATES.get(state, state if isinstance(state, str) else None), value

    @property
    def is_visible(self):
        """A2A clients get it."""
        return self.kind != INTERNAL


class Log:
    """Of one task, as the database has it. last_seq, state: of the task's row."""

    def __init__(self, task, records, last_seq=None, state=None, agent="", owner=0):
        self.task, self.records, self.agent, self.owner = task, records, agent, owner
        self.last_seq = len(records) if last_seq is None else last_seq
        self.state = STATES.get(state, state) if state is not None else (self.states() or [None])[-1]
        self.by_seq = {r.seq: r for r in records}
        self.visible = [r.seq for r in records if r.is_visible]
        self.views = views(records)  # views[p]: behind p records

    def states(self):
        return [r.state for r in self.records if r.kind in (TASK, STATUS)]

    def internal(self, kind):
        return [r.value for r in self.records if r.kind == INTERNAL and r.value.get("kind") == "internal:" + kind]

    def is_started(self, key):
        """key: of a run, TASK-tROUND-INDEX: the call is in the message TASK-mROUND, and its start is stored before it runs."""
        number, _, index = key.removeprefix(self.task + "-t").partition("-")
        for v in self.internal("message"):
            if v["message"]["messageId"] == f"{self.task}-m{number}":
                calls = [c for p in v["message"]["parts"] for c in (p.get("data") or {}).get("tool_calls", [])]
                started = {s.get("toolCallId") for s in self.internal("tool-start")}
                return int(index) < len(calls) and calls[int(index)]["call_id"] in started
        return False


def texts_of(task):
    return {a["artifactId"]: "".join(p.get("text", "") for p in a["parts"]) for a in task.get("artifacts", [])}


def view_of(task):
    """The part of a Task that is compared: its state and the texts of its artifacts."""
    return plain_state(task["status"]["state"]), tuple(sorted(texts_of(task).items()))


def views(records):
    state, texts, out = None, {}, [(None, ())]
    for r in records:
        if r.kind == TASK:
            t = r.value["task"]
            state, texts = plain_state(t["status"]["state"]), {**texts, **texts_of(t)}
        elif r.kind == STATUS:
            state = plain_state(r.value["statusUpdate"]["status"]["state"])
        elif r.kind == ARTIFACT:
            u = r.value["artifactUpdate"]
            a, text = u["artifact"]["artifactId"], "".join(p.get("text", "") for p in u["artifact"]["parts"])
            texts = {**texts, a: texts.get(a, "") + text if u.get("append") else text}
        out.append((state, tuple(sorted(texts.items()))))
    return out


# ---- what clients did ------------------------------------------------------------------------------------------------------

class Op:
    """kind:
    send     message, task (a Task, or its id with view None)
    get      task, view
    cancel   task, view; refused: TaskNotCancelable
    list     states {task: state}, of a context that has only this client's tasks; must {task}: acknowledged before
    stream   task, after (the cursor, or None), records [(cursor, payload, time)]; snapshot: the first one is the Task so far
    numbers  response, after, records [(sequence number, payload)]
    events   task, payloads: an SDK's, without cursors
    text     task or None, protocol, text, want; frames: what the text is of
    end      tag, protocol, frames: a failure as the end of a task whose message has the tag
    fault    text: something that no server may send
    outcome: ok, refused (an error of the server), unknown (no answer)."""

    def __init__(self, client, kind, start, end, outcome="ok", **data):
        self.client, self.kind, self.start, self.end, self.outcome, self.data = client, kind, start, end, outcome, data

    def __getattr__(self, name):
        try:
            return self.__dict__["data"][name]
        except KeyError:
            return None

    def __repr__(self):
        return f"{self.client} {self.kind} [{self.start:.3f} {self.end:.3f}] {self.outcome}"


class Floors:
    """The positions that were seen, by time: what a later read may not be older than."""

    def __init__(self):
        self.times, self.positions = [], []

    def note(self, time, position):
        at = bisect.bisect_right(self.times, time)
        self.times.insert(at, time)
        self.positions.insert(at, position)

    def before(self, time):
        """The highest position that was seen at this time or earlier."""
        return max(self.positions[:bisect.bisect_right(self.times, time)], default=0)


def dumps(value):
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


class Checker:
    def __init__(self, logs, ops, messages=None, runs=(), once=(), completes=(), is_over=True):
        """logs: {task: Log}. messages: [(message id, task)] of the database. runs: Run of tools; once: tools that may not run twice.
        completes: agents whose tasks can be resumed: without a cancel they complete.
        is_over: everything healed, and there was time: no task may work any more."""
        self.logs, self.ops, self.messages, self.runs, self.once, self.is_over = logs, ops, messages or [], runs, set(once), is_over
        self.completes = set(completes)
        self.found, self.by_client, self.by_all, self.payloads = [], {}, {}, {}

    def report(self, rule, task, text):
        self.found.append(Violation(rule, task, text))

    def check(self):
        for log in self.logs.values():
            self.check_log(log)
        self.check_messages()
        self.check_runs()
        for op in sorted(self.ops, key=lambda o: o.end):
            getattr(self, "check_" + op.kind)(op)
        return self.found

    # -- the log itself

    def check_log(self, log):
        seqs = [r.seq for r in log.records]
        if seqs != list(range(1, len(seqs) + 1)):
            self.report("log-gap", log.task, f"seqs {seqs}")
        if log.last_seq != len(seqs):
            self.report("log-end", log.task, f"the row says {log.last_seq}, the log has {len(seqs)} records")
        before = None
        for r in log.records:
            if before in TERMINAL:
                self.report("illegal-transition", log.task, f"record {r.seq} ({r.state or r.kind}) behind {before}")
                break
            if r.kind in (TASK, STATUS):
                if r.state == "SUBMITTED" and before not in (None, "SUBMITTED"):
                    self.report("illegal-transition", log.task, f"record {r.seq}: {before} -> SUBMITTED")
                before = r.state
        before = (log.states() or [None])[-1]
        if log.state != before:
            self.report("row-state", log.task, f"the row says {log.state}, the log {before}")
        if self.is_over and before not in RESTING:
            self.report("stuck", log.task, f"{log.agent} is {before} at the end, owner {log.owner}, last_seq {log.last_seq}")
        elif before not in ("COMPLETED", "CANCELED") and log.agent in self.completes:
            self.report("not-completed", log.task, f"{log.agent} is {before}: {log.records[-1].value}")
        turns = [r.turn for r in log.records]
        if turns != sorted(turns):
            self.report("log-turns", log.task, f"turns {turns}")
        for rule, ids in (("result-twice", [v.get("toolCallId") for v in log.internal("tool-complete")]),
                          ("message-twice", [v["message"]["messageId"] for v in log.internal("message")])):
            for i in {i for i in ids if ids.count(i) > 1}:
                self.report(rule, log.task, f"{i} is {ids.count(i)} times in the log")

    def check_messages(self):
        tasks = {}
        for message, task in self.messages:
            tasks.setdefault(message, set()).add(task)
        for log in self.logs.values():
            for r in log.records:
                if r.kind == TASK:
                    for m in r.value["task"].get("history", []):
                        if m.get("role") == "ROLE_USER":
                            tasks.setdefault(m["messageId"], set()).add(log.task)
        for message, of in tasks.items():
            if len(of) > 1:
                self.report("message-in-two-tasks", None, f"{message} is in {sorted(of)}")
        self.tasks_of = tasks

    def check_runs(self):
        seen = {}
        for run in self.runs:
            seen.setdefault((run.tool, run.key), []).append(run)
        for (tool, key), runs in seen.items():
            if tool in self.once and len(runs) > 1:
                self.report("ran-twice", None, f"{tool} ran {len(runs)} times for {key}, fences {[r.fence for r in runs]}")
            log = next((g for g in self.logs.values() if key.startswith(g.task + "-t")), None)
            if log is None:
                self.report("run-without-task", None, f"{tool} ran for {key}")
            elif not log.is_started(key):
                self.report("run-without-record", log.task, f"{tool} ran for {key}, and its start is not in the log")
            # a stopped server may run a tool late, with its old fence, by which the tool can refuse it
            fences = [r.fence for r in runs if r.fence]
            if len(set(fences)) < len(fences):
                self.report("fence-twice", log and log.task, f"{tool} ran for {key} with fences {fences}")

    # -- views

    def log_of(self, op, task=None):
        task = task or op.task
        log = self.logs.get(task)
        if log is None:
            self.report("lost-task", task, f"{op}: it is not in the database")
        return log

    def floors(self, op, task):
        return self.by_client.setdefault((op.client, task), Floors()), self.by_all.setdefault(task, Floors())

    def saw(self, op, task, time, position):
        for f in self.floors(op, task):
            f.note(time, position)

    def place(self, op, task, fits, what):
        """Finds the lowest position that fits and is not older than what was seen before; reports if no position does."""
        log = self.log_of(op, task)
        if log is None:
            return None
        places = [p for p in range(1, len(log.records) + 1) if fits(log.views[p])]
        if not places:
            self.report("unknown-view", task, f"{op}: no position of the log has {what}")
            return None
        mine, all_of = (f.before(op.start) for f in self.floors(op, task))
        if places[-1] < mine:
            self.report("older-than-own", task, f"{op}: {what} is position {places[-1]}, this client had seen {mine}")
            return None
        if places[-1] < all_of:
            self.report("older-than-others", task, f"{op}: {what} is position {places[-1]}, another client had seen {all_of} before")
            return None
        position = next(p for p in places if p >= max(mine, all_of))
        self.saw(op, task, op.end, position)
        return position

    def check_view(self, op):
        self.place(op, op.task, lambda v: v == op.view, f"the view {op.view}")

    def check_send(self, op):
        if op.outcome != "ok":
            return
        if op.message and op.task not in self.tasks_of.get(op.message, ()):
            self.report("lost-message", op.task, f"{op}: message {op.message} was acknowledged")
        if op.view:
            self.check_view(op)
        elif self.log_of(op):
            self.saw(op, op.task, op.end, 1)

    def check_get(self, op):
        if op.outcome == "ok":
            self.check_view(op)
        elif op.error == "TaskNotFound":
            if max(f.before(op.start) for f in self.floors(op, op.task)):
                self.report("lost-task", op.task, f"{op}: a task that was acknowledged is not found")

    def check_cancel(self, op):
        if op.outcome == "ok":
            position = self.place(op, op.task, lambda v: v == op.view, f"the view {op.view}")
            log = self.logs.get(op.task)
            if op.view[0] != "CANCELED":
                self.report("cancel", op.task, f"{op}: a cancel that succeeded returns {op.view[0]}")
            elif position and log.state != "CANCELED":
                self.report("lost-cancel", op.task, f"{op}: it was canceled, and is {log.state}")
        elif op.error == "TaskNotCancelable":
            self.place(op, op.task, lambda v: v[0] in TERMINAL, "a terminal state (TaskNotCancelable)")
        elif op.error == "TaskNotFound":
            self.check_get(op)

    def check_list(self, op):
        if op.outcome != "ok":
            return
        for task in op.must or ():
            if task not in op.states:
                self.report("not-listed", task, f"{op}: it was acknowledged before")
        for task, state in op.states.items():
            self.place(op, task, lambda v, s=plain_state(state): v[0] == s, f"the state {state} in a list")

    def check_stream(self, op):
        log = self.log_of(op) if op.records or op.outcome == "ok" else None
        if log is None:
            return
        last, records = op.after, list(op.records)
        if op.snapshot and records:
            cursor, payload, time = records.pop(0)
            task = payload["task"]
            if not 0 < cursor <= len(log.records) or log.views[cursor] != view_of(task):
                self.report("unknown-view", op.task, f"{op}: the snapshot at {cursor} is {view_of(task)}")
            elif cursor < self.floors(op, op.task)[0].before(op.start):
                self.report("older-than-own", op.task, f"{op}: the snapshot is position {cursor}")
            elif cursor < self.floors(op, op.task)[1].before(op.start):
                self.report("older-than-others", op.task, f"{op}: the snapshot is position {cursor}")
            self.saw(op, op.task, time, cursor)
            last = cursor
        for cursor, payload, time in records:
            if last is not None and cursor <= last:
                self.report("cursor-repeats", op.task, f"{op}: {cursor} behind {last}")
                return
            record = log.by_seq.get(cursor)
            if record is None:
                self.report("lost-record", op.task, f"{op}: {cursor} was streamed, the log ends at {len(log.records)}")
                return
            if dumps(record.value) != dumps(payload):
                self.report("changed-record", op.task, f"{op}: {cursor} was streamed as {dumps(payload)[:300]}, the log has {dumps(record.value)[:300]}")
                return
            skipped = [s for s in log.visible if (last or 0) < s < cursor]
            if skipped:
                self.report("cursor-skips", op.task, f"{op}: {skipped} between {last} and {cursor}")
                return
            last = cursor
            self.saw(op, op.task, time, cursor)
        if op.is_whole and [s for s in log.visible if s > (last or 0)]:
            self.report("cut-stream", op.task, f"{op}: it ended as complete at {last}, the log goes on")

    def check_numbers(self, op):
        """Events of a response: numbers without gaps, and the same event under a number whenever it is read."""
        want = 0 if op.after is None else op.after + 1
        for number, payload in op.records:
            if number != want:
                self.report("cursor-skips" if number > want else "cursor-repeats", op.response, f"{op}: event {number}, wanted {want}")
                return
            want += 1
            first = self.payloads.setdefault((op.response, number), dumps(payload))
            if first != dumps(payload):
                self.report("changed-record", op.response, f"{op}: event {number} was {first[:300]}, and is {dumps(payload)[:300]}")
                return

    def check_events(self, op):
        """An SDK hides the cursors: its events must be neighbours in the log."""
        log = self.log_of(op) if op.payloads else None
        if log is None:
            return
        have = [dumps(log.by_seq[s].value) for s in log.visible]
        want = [dumps(p) for p in op.payloads]
        if op.snapshot:
            want = want[1:]
        if not any(have[i:i + len(want)] == want for i in range(len(have) - len(want) + 1)):
            at = have.index(want[0]) if want[0] in have else 0
            n = next(k for k in range(len(want)) if have[at + k:at + k + 1] != want[k:k + 1])
            there = have[at + n][:300] if at + n < len(have) else "its end"
            self.report("cursor-skips", op.task, f"{op}: the {len(want)} events are not neighbours in the log of {len(have)}: event {n} is {want[n][:300]}, "
                        f"the log has {there} at {at + n}")
        elif not op.snapshot and op.after is None and have[:len(want)] != want:
            self.report("cursor-skips", op.task, f"{op}: the events are not the first of the log")

    def check_text(self, op):
        if op.outcome == "ok" and op.text != op.want:
            self.report("text", op.task, f"{op}: {op.protocol} has {op.text[:300]!r}, wanted {op.want[:300]!r}" + "".join("\n" + f for f in op.frames or ()))

    def check_end(self, op):
        """A failure may be shown only if the task failed."""
        log = next((g for g in self.logs.values() if g.records and op.tag in dumps(g.records[0].value)), None)
        if log is not None and log.state not in ("FAILED", "CANCELED", "REJECTED"):
            self.report("false-end", log.task, f"{op}: {op.protocol} ended as failed, the task is {log.state}" + "".join("\n" + f for f in op.frames))

    def check_fault(self, op):
        self.report("protocol", op.task, f"{op}: {op.text}")


def check_history(logs, ops, **more):
    return Checker(logs, ops, **more).check()
