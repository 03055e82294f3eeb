"""The frontends beside A2A, and Chat Completions beside another gateway: rows for scripts/bench-server."""
import os
import secrets
import statistics
import subprocess
import time
import urllib.request

from relay import write_relay_config
from kit import FOLDER, ROOT, Failed, Row, Server, Skip, bench, free_port, load, load_at, ours, pinned, write_config

# ---- what an event costs more than over A2A -----------------------------------------------------------------------

MOST_MORE_US = 1.5
FRONTS = [("AG-UI", "ag-ui", "ag-ui"), ("Chat Completions", "chat", "v1/chat/completions"),
          ("Responses", "responses", "v1/responses"), ("AI SDK", "ai-sdk", "ai-sdk")]
SHAPES = [("at once", "chunks 100"), ("a turn of the loop between them", "chunks 100 yield")]


def cost(api, path, text, seconds):
    """CPU microseconds per event of a stream."""
    got = load(ours(), "--api", api, "--mode", "stream", "--text", text, "--seconds", str(seconds), "--warmup", "0.2", "-n", "16", path=path)
    return 1e6 / got["events_per_cpu_s"]


class MoreRow(Row):
    """The goal is how much more ours is, not how many times."""

    def __init__(self, front, shape, seconds):
        name, api, path = front
        how, text = shape
        super().__init__(f"{name}: streams of 100 chunks, {how}", "CPU microseconds an event", MOST_MORE_US,
                         lambda: (cost(api, path, text, seconds), cost("a2a", "", text, seconds)),
                         goal_is_least=False, against="A2A")

    def ratio(self):
        return statistics.median(a - b for a, b in self.rounds)

    def compared(self):
        return f"{self.ratio():+.2f}"

    def goal_text(self):
        return f"at most +{self.goal:g}"


# ---- another gateway ------------------------------------------------------------------------------------------------

TIMES_ITS_REQUESTS, TIMES_ITS_RELAYED = 10, 20
LITELLM = os.path.join(ROOT, "tests/bench/peer/.venv-litellm/bin")
START_S = 180
# LiteLLM puts the role before the text, so the agent knows no such command and answers both with its list of commands
TEXT, ANSWER = "hello", "echo TEXT | chunks N [yield] | hold SECONDS"
KEY = "sk-" + secrets.token_hex(32)  # LiteLLM does not start without one: both ask for it


class Litellm:
    """Its proxy, one worker, before a server that has the other core with the load generator: by default the bench agent."""

    def __init__(self, model="a2a/bench", url=None, key=None):
        port, config = free_port(), os.path.join(FOLDER, "litellm.yaml")
        self.url, self.p = f"http://127.0.0.1:{port}/", None
        self.agent = None if url else Server(*ours(), core=1)
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"model_list:\n  - model_name: bench\n    litellm_params:\n      model: {model}\n"
                    f"      api_base: {url or self.agent.url.rstrip('/')}\n" + (f"      api_key: {key}\n" if key else ""))
        environment = {**os.environ, "LITELLM_MASTER_KEY": KEY, "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                       "LITELLM_LOG": "ERROR", "LITELLM_MODE": "PRODUCTION"}
        with open(os.path.join(FOLDER, "litellm.log"), "wb") as log:
            self.p = subprocess.Popen(
                pinned(0, os.path.join(LITELLM, "litellm"), "--config", config, "--host", "127.0.0.1", "--port",
                       str(port), "--telemetry", "False"), stdout=log, stderr=log, cwd=FOLDER, env=environment)
        try:
            self.wait()
        except Failed:
            self.__exit__()
            raise

    def wait(self):
        began = time.monotonic()
        while time.monotonic() - began < START_S and self.p.poll() is None:
            try:
                urllib.request.urlopen(self.url + "health/liveliness", timeout=5).close()
                return
            except OSError:
                time.sleep(0.5)
        with open(os.path.join(FOLDER, "litellm.log"), encoding="utf-8", errors="replace") as f:
            said = [line.strip() for line in f if line.strip()]
        raise Failed("LiteLLM's proxy did not start: " + (said[-1][:200] if said else "it printed nothing"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.kill()
        self.p.wait()
        if self.agent:
            self.agent.__exit__()


class Gateway:
    def __init__(self, seconds):
        self.args = ["--api", "chat", "--text", TEXT, "--expect", ANSWER, "--token", KEY, "--seconds", str(seconds),
                     "--warmup", "0.2", "-n", "16"]
        self.got = {}  # by round: both rows look at the same run

    def both(self):
        config = os.path.join(FOLDER, "with-key.yaml")
        write_config(config, f"tokens:\n  - {{token: {KEY}, principal: bench}}\n")
        mine = load(ours(config=config), *self.args, path="v1/chat/completions")
        if not os.access(os.path.join(LITELLM, "litellm"), os.X_OK):
            raise Skip("LiteLLM is not installed (`scripts/setup bench` tries to; log: .setup/pip-litellm.log)")
        try:
            with Litellm() as theirs:
                bench(theirs.url + "v1/chat/completions", *self.args, "--requests", "1", "-n", "1")
                return mine, load_at(theirs, *self.args, path="v1/chat/completions")
        except Failed as e:
            raise Skip(f"LiteLLM: {e}") from e

    def relayed(self, of, round_):
        """Ours before the same agent, which runs where LiteLLM's does; theirs is the other rows' run."""
        with Server(*ours(), core=1) as agent:
            config = write_relay_config(agent.url, f"tokens:\n  - {{token: {KEY}, principal: bench}}\n")
            mine = load(ours(config=config), *self.args, path="v1/chat/completions")
        return of(mine), self.figures(of, round_)[1]

    def figures(self, of, round_):
        if round_ not in self.got:
            self.got[round_] = self.both()
        return tuple(of(x) for x in self.got[round_])


def gateway_rows(seconds):
    gateway = Gateway(seconds)

    def row(what, unit, goal, of, figures=gateway.figures):
        made = Row(what, unit, goal, lambda: figures(of, len(made.rounds)), against="LiteLLM")
        return made
    return [row("Chat Completions, an answer at once", "requests per CPU-second", TIMES_ITS_REQUESTS, lambda x: x["requests_per_cpu_s"]),
            row("Chat Completions, an answer at once: the slowest of a hundred (p99), 16 connections", "ms", None,
                lambda x: x["latency_us"]["p99"] / 1000),
            row("Chat Completions, an answer at once, of a remote A2A agent (type a2a)", "requests per CPU-second", TIMES_ITS_RELAYED,
                lambda x: x["requests_per_cpu_s"], gateway.relayed)]


def event_rows(seconds):
    return [MoreRow(front, shape, seconds) for shape in SHAPES for front in FRONTS]


def litellm_version():
    try:
        return subprocess.check_output([os.path.join(LITELLM, "python"), "-c", "import importlib.metadata as m; import platform as p; "
                                        "print(f\"litellm {m.version('litellm')}, Python {p.python_version()}\")"], text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        return "LiteLLM: not installed"
