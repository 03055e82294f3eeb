"""How to make the built-in agents do a thing, in one place.

bench and tck are defined by the project (bench) and by the conformance kits (tck: the messageId's
prefix says what happens); demo is scripted by what the user writes, `help` lists its scripts.
"""
from .a2a import new_id

# ---- demo: the words of its scripts -----------------------------------------------------------------------
DEMO_TEXT = "stream"         # streams a text as artifact-updates, completes with the whole text
DEMO_SLOW = "status"         # status indicators over 5 s, cancelable at any point, then completes
DEMO_FILE = "file"           # file artifacts
DEMO_DATA = "data"           # a data artifact
DEMO_ASK = "ask"             # input-required; the next message of the task completes it
DEMO_AUTH = "auth"           # auth-required; the next message of the task completes it
DEMO_FAIL = "fail"           # failed, with metadata.error
DEMO_REJECT = "reject"       # rejected
DEMO_END_WELL = [DEMO_TEXT, DEMO_SLOW, DEMO_FILE, DEMO_DATA]
DEMO_ALL = DEMO_END_WELL + [DEMO_ASK, DEMO_AUTH, DEMO_FAIL, DEMO_REJECT]
DEMO_MORE = ["break", "long 200", "unicode", "slow 2", "echo so many words", "tools", "parallel-tools", "client-tool", "state",
             "reasoning", "interrupt", "usage", "subagent", "files"]  # only Dragoman's own has these


# ---- tck: a message by what is to happen ------------------------------------------------------------------

def tck(what):
    """A messageId for the tck agent: complete-task, input-required, artifact-text, artifact-file,
    artifact-file-url, artifact-data, message-response, reject-task, stream-001, stream-artifact-chunked..."""
    return new_id("tck-" + what)


def completed(c, context=None):
    """A completed task of a client of the tck agent."""
    return c.send("please", id=tck("complete-task"), context=context).task


def waiting(c, context=None):
    """A task in INPUT_REQUIRED."""
    t = c.send("please", id=tck("input-required"), context=context).task
    assert t["status"]["state"] == "TASK_STATE_INPUT_REQUIRED", t
    return t
