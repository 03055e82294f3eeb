"""`dragoman lint`: what it prints, how it ends, and servers, right and wrong ones."""
import http.server
import json
import os
import re
import subprocess

from support import DRAGOMAN, ENV, FOLDER, ROOT, Server, check, check_same, compact, failed, folder, run, succeeded, test, write
from strangers import Stranger

BAD = os.path.join(ROOT, "tests/lint/working-status-text/bad.a2a-0.3.jsonl")
WRONG = os.path.join(ROOT, "tests/lint/first-event/bad.a2a-1.0.sse")
GOOD = os.path.join(ROOT, "tests/lint/first-event/good.a2a-1.0.sse")
NOTE = os.path.join(ROOT, "tests/lint/missing-last-chunk/bad.a2a-1.0.jsonl")


def ended(status, *args, **options):
    e = run("lint", *args, **options)
    check(e.status == status and not e.err, e)
    return e.out.decode()


# ---- files ------------------------------------------------------------------------------------------------------

@test("lint: errors end with 1, warnings with --strict, notes never")
def _():
    check_same(ended(0, GOOD), "", "of a good stream")
    ended(1, WRONG)
    ended(0, BAD)
    ended(1, "--strict", BAD)
    check("missing-last-chunk" in ended(0, "--strict", NOTE), "the note is reported")


@test("lint: text names file, line, column, severity, rule and pointer, and says once what to do [R004-14]")
def _():
    lines = ended(0, BAD, BAD).splitlines()
    check_same(len(lines), 3, "lines")
    check(re.fullmatch(re.escape(BAD) + r":2:195: warning: .* \[working-status-text\] at /status/message/parts/0", lines[0]), lines[0])
    check(lines[1].startswith("    fix: Send no message, or a data part "), lines[1])
    check_same(lines[2], lines[0], "the second file")


@test("lint: JSON is a line for each finding")
def _():
    f = json.loads(ended(0, "--format", "json", BAD))
    check_same([f[k] for k in ("file", "line", "column", "value", "rule", "severity", "pointer")],
               [BAD, 2, 195, 2, "working-status-text", "warning", "/status/message/parts/0"])
    check(f["message"] and f["fix"], f)
    check_same(ended(0, "--format", "json", GOOD), "", "of a good stream")


@test("lint: standard input, several files, files that cannot be read")
def _():
    check("<stdin>:1:" in ended(1, stdin=open(WRONG, "rb").read()), "stdin")
    check("<stdin>:1:" in ended(1, "-", stdin=open(WRONG, "rb").read()), "-")
    here = folder()
    e = run("lint", os.path.join(here, "none.json"), BAD, here)
    check(e.status == 1 and e.err.count("dragoman: cannot ") == 2 and b"working-status-text" in e.out, e)
    check("[json]" in ended(1, stdin=b""), "empty input is not JSON")


@test("lint: what is not JSON is a finding, and what follows is still looked at")
def _():
    text = ('{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_SUBMITTED"}}}\n'
            '{"statusUpdate":{"taskId":"t" oops}}\n'
            '{"statusUpdate":{"taskId":"u","contextId":"c","status":{"state":"TASK_STATE_COMPLETED"}}}\n')
    found = [json.loads(line) for line in ended(1, "--format", "json", stdin=text).splitlines()]
    check_same([(f["rule"], f["line"], f["column"]) for f in found], [("json", 2, 31), ("changing-ids", 3, 27)])


@test("lint: control characters of a document reach no terminal, and JSON stays JSON")
def _():
    task = {"task": {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_SUBMITTED"}}}
    evil = {"statusUpdate": {"taskId": "\x1b[2J\x9b" + "ä" * 40, "contextId": "c", "status": {"state": "TASK_STATE_COMPLETED"}}}
    text = compact(task) + "\n" + compact(evil) + "\n"
    out = ended(1, stdin=text)
    check(not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", out) and "\\x9b" in out, ascii(out))
    check("\x9b" in json.loads(ended(1, "--format", "json", stdin=text))["message"], "in JSON")


@test("lint: usage")
def _():
    failed(run("lint", "--format", "xml"), 2, "unknown format of findings 'xml'", "allowed values: text, json, sarif")
    failed(run("lint", "--from", "openai-chat"), 2, "unknown format 'openai-chat'")
    failed(run("lint", "--rules", BAD), 2, "needs no FILE")
    failed(run("lint", BAD, "http://127.0.0.1:1"), 2, "FILEs or one URL")
    help = succeeded(run("help", "lint")).out.decode()
    check("--format" in help and "--strict" in help and "--rules" in help, help)
    check(b"working-status-text (warning, a2a)" in succeeded(run("lint", "--rules")).out, "rules")


# ---- SARIF --------------------------------------------------------------------------------------------------------

def check_sarif(text):
    """What the schema of SARIF 2.1.0 asks of the members that we write. The results."""
    log = json.loads(text)
    check_same(log["version"], "2.1.0")
    check(re.fullmatch(r"https?://.*sarif.*2\.1\.0.*\.json", log["$schema"]), log["$schema"])
    check_same(len(log["runs"]), 1, "runs")
    one = log["runs"][0]
    check(set(one) <= {"tool", "columnKind", "results"} and one["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints"), set(one))
    driver = one["tool"]["driver"]
    check(driver["name"] and driver["version"], driver)
    ids = [r["id"] for r in driver["rules"]]
    check_same(len(ids), len(set(ids)), "ids")
    for r in driver["rules"]:
        check(r["shortDescription"]["text"] and r["help"]["text"], r)
        check(r["defaultConfiguration"]["level"] in ("none", "note", "warning", "error"), r)
    for r in one["results"]:
        check_same(ids[r["ruleIndex"]], r["ruleId"])
        check(r["level"] in ("none", "note", "warning", "error") and r["message"]["text"], r)
        for place in r["locations"]:
            physical = place["physicalLocation"]
            check(re.fullmatch(r"[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]+", physical["artifactLocation"]["uri"]), physical)
            region = physical["region"]
            check(all(type(region[k]) is int and region[k] >= 1 for k in ("startLine", "startColumn")), region)
            for logical in place["logicalLocations"]:
                check(type(logical["fullyQualifiedName"]) is str and logical["kind"] == "member", logical)
    return one["results"]


@test("lint: SARIF 2.1.0 has what its schema asks for, with a result for each finding")
def _():
    check_same(check_sarif(ended(0, "--format", "sarif", GOOD)), [], "of a good stream")
    odd = write(os.path.join(folder(), "a b%é.sse"), open(WRONG, "rb").read())
    results = check_sarif(ended(1, "--format", "sarif", odd, BAD))
    check_same([r["ruleId"] for r in results], ["first-event", "working-status-text"])
    check(results[0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].endswith("/a%20b%25%C3%A9.sse"), results[0])
    check_same(results[1]["locations"][0]["logicalLocations"][0]["fullyQualifiedName"], "/status/message/parts/0")
    text = '[{"kind":"message","messageId":"é😊","role":"agent","parts":[{"kind":"text","text":null}]}]'
    results = check_sarif(ended(1, "--format", "sarif", stdin=text))
    want = text.index("null") + 1  # in characters, not in bytes
    check(want in [r["locations"][0]["physicalLocation"]["region"]["startColumn"] for r in results], results)
    every = [os.path.join(d, f) for d, _, files in os.walk(os.path.join(ROOT, "tests/lint")) for f in files if f.startswith("bad.")]
    check(len(check_sarif(ended(1, "--format", "sarif", *every))) > 60, "all at once")


# ---- servers ----------------------------------------------------------------------------------------------------------

def scripts():
    """The commands of the demo agent; `slow`, `auth` and `listen` wait for the caller."""
    text = open(os.path.join(ROOT, "src/backend/demo/demo_scripts.c"), encoding="utf-8").read()
    return [w for w in re.findall(r'^    \{"([a-z-]+)"', text, re.M) if w not in ("slow", "auth", "listen")]


@test("lint: our own server and agents are clean, in every version and binding [R004-24]")
def _():
    with Server(agent="demo") as demo, Server(agent="hello") as hello:
        for url in (demo.url, hello.url):
            for version in ("1.0", "0.3"):
                for binding in ("jsonrpc", "rest"):
                    ended(0, "--strict", "--protocol", version, "--binding", binding, url)
            check_same(ended(0, "--strict", url), "", url)
        words = scripts()
        check(len(words) > 8, words)
        for word in words:
            out = ended(0, "--strict", "--protocol", "0.3", "--message", word + " 20", demo.url)
            check_same(out, "", word)


@test("lint: the examples are clean, but for the one that is broken [R004-24]")
def _():
    tour = os.path.join(ROOT, "examples/tour")
    names = [os.path.join(tour, n) for n in sorted(os.listdir(tour)) if n != "broken.json"]
    check(len(names) > 3, names)
    check_same(ended(0, "--strict", *names), "", "findings")
    check("[wrong-value] at /parts/1/text" in ended(1, os.path.join(tour, "broken.json")), "the broken one")


CARD = {"name": "Wrong", "description": "Does it all wrong.", "version": "1", "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"], "skills": [], "documentationUrl": None}


class WrongHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        owner = self.server.owner
        self.give("application/json", json.dumps(owner.card or {
            **CARD, "supportedInterfaces": [{"url": owner.url + "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]}))

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.owner.asked.append(asked)
        self.give("text/event-stream", "".join(f"data: {line}\n\n" for line in self.server.owner.frames(asked["id"])))

    def give(self, type, text):
        self.send_response(200)
        self.send_header("Content-Type", type)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


class Wrong(Stranger):
    def __init__(self, frames, card=None):
        self.frames, self.card, self.asked = frames, card, []
        super().__init__(WrongHandler)


def wrong_frames(id):
    ids = {"taskId": "t", "contextId": "c"}
    text = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "Thinking..."}]}
    for result in ({"statusUpdate": {**ids, "status": {"state": "TASK_STATE_WORKING", "message": text}}},
                   {"artifactUpdate": {**ids, "append": True, "artifact": {"artifactId": "a", "parts": [{"text": "Hello"}]}}},
                   {"kind": "status-update", "taskId": "u", "contextId": "c", "final": False, "status": {"state": "working"}}):
        yield compact({"jsonrpc": "2.0", "id": id, "result": result})
    yield "{broken"


@test("lint: faults of a server's card and stream are reported, each with its URL")
def _():
    with Wrong(wrong_frames) as server:
        found = [json.loads(line) for line in ended(1, "--format", "json", "--message", "Hi there", server.url).splitlines()]
        check_same([(f["file"].replace(server.url, ""), f["rule"]) for f in found], [
            ("/.well-known/agent-card.json", "null-member"),
            ("/rpc", "first-event"), ("/rpc", "working-status-text"), ("/rpc", "unknown-artifact-append"),
            ("/rpc", "dialect-mixing"), ("/rpc", "json"), ("/rpc", "missing-final"), ("/rpc", "missing-last-chunk")])
        check_same(server.asked[0]["params"]["message"]["parts"], [{"text": "Hi there"}])
        results = check_sarif(ended(1, "--format", "sarif", server.url))
        check_same(results[1]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], server.url + "/rpc")


@test("lint: an invalid card is reported before the program ends; a server that does not answer is not a finding")
def _():
    with Wrong(wrong_frames, {**CARD, "supportedInterfaces": "none", "version": ""}) as server:
        e = run("lint", "--format", "json", server.url)
        rules = {json.loads(line)["rule"] for line in e.out.splitlines()}
        check(e.status == 1 and "is not an agent card" in e.err and rules == {"null-member", "required-member"}, e)
        url = server.url
    failed(run("lint", url), 1, "cannot reach")


# ---- memory ----------------------------------------------------------------------------------------------------------------

def peak_of(make, n):
    """Kilobytes that lint takes at most for n events."""
    env = {**ENV, "ASAN_OPTIONS": ENV["ASAN_OPTIONS"] + ":quarantine_size_mb=1"}  # what is freed is gone
    p = subprocess.Popen([DRAGOMAN, "lint", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, cwd=FOLDER)
    for i in range(0, n, 1000):
        p.stdin.write("".join(make(k) for k in range(i, i + 1000)).encode())
    p.stdin.close()
    out = p.stdout.read()
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    check(out.count(b"\n") < 5, out[:2000])
    return usage.ru_maxrss


@test("lint: memory does not grow with the stream")
def _():
    def a2a(i):
        if not i:
            return '{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}\n'
        return ('{"artifactUpdate":{"taskId":"t","contextId":"c","append":%s,"artifact":{"artifactId":"a","parts":[{"text":"piece %d, "}]}}}\n'
                % ("true" if i > 1 else "false", i))

    def agui(i):
        kinds = ["START", "CONTENT", "END"]
        return ('{"type":"RUN_STARTED","threadId":"t","runId":"r"}\n' if not i else
                '{"type":"TEXT_MESSAGE_%s","messageId":"m-%d"%s}\n' % (kinds[(i - 1) % 3], (i - 1) // 3,
                                                                    ',"delta":"piece %d"' % i if i % 3 == 2 else ""))
    # of messages that have ended it remembers so many ids: the shorter stream of AG-UI has more
    for make, n_few, n_many in ((a2a, 60000, 180000), (agui, 200000, 400000)):
        few, many = peak_of(make, n_few), peak_of(make, n_many)
        check(many < few * 1.1, f"{few} KiB for {n_few} events, {many} for {n_many}")
