"""What a token costs that an agent of type llm reads from its model, and 1,000 of them at once: rows for scripts/bench-server."""
import json
import os
import subprocess

from fronts import KEY, LITELLM, Litellm
from kit import BUILD, FOLDER, Failed, Row, Server, Skip, bench, load, load_at, ours, pinned
from relay import bare_reader_cost

MODEL_SERVER = os.path.join(BUILD, "tests/bench/model_server")
TOKEN_READER = os.path.join(BUILD, "tests/bench/token_reader")
MOST_TIMES, TIMES_LITELLM, MOST_KIB = 1.5, 20, 64
TOKENS = 100
SHAPES = [("at once", f"{TOKENS}"), ("a turn of the loop between them", f"{TOKENS} yield")]
LOOPS, PER_SECOND, SECONDS = 1000, 50, 10
LATEST = 1.2  # of SECONDS: the streams keep the pace of their models, opening them included


def write_llm_config(model, more=""):
    """A server whose only agent is a model at this server; its id is that of the bench agent."""
    path = os.path.join(FOLDER, "llm.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("loops: 1\nlog:\n  level: warn\nagents:\n  - id: bench\n    type: llm\n"
                f"    settings: {{base_url: \"{model.url}v1\", api: chat, model: bench-1}}\n{more}")
    return path


def check_tokens(got, connections=0):
    """`dragoman bench` counts only the chunks of the bench agent: LiteLLM's first one, and our last one over A2A, are empty.
    A server that is slow has streams on every connection that began before the time that is counted."""
    if not got["requests"] or got["events"] < (got["requests"] - connections) * TOKENS:
        raise Failed(f"{got['requests']} streams of {TOKENS} tokens have only {got['events']} events")
    return got


def token_costs(tokens, seconds):
    """CPU microseconds a token: of the llm agent; of an event of the bench agent and a bare reader of the model together."""
    args = ["--mode", "stream", "--seconds", str(seconds), "--warmup", "0.2", "-n", "16", "--text"]
    with Server(MODEL_SERVER, core=1) as model:
        with Server(*ours(config=write_llm_config(model))) as server:
            got = load_at(server, *args, f"tokens {tokens}")
        bare = bare_reader_cost(f"{model.url}v1/chat/completions", f"tokens {tokens}", seconds, "chat")
    check_tokens(got)
    return 1e6 / got["events_per_cpu_s"], 1e6 / load(ours(), *args, f"chunks {tokens}")["events_per_cpu_s"] + bare


def litellm_tokens(seconds):
    """Tokens per CPU-second of both before the same model. LiteLLM gets as many streams as it answers; both ask for a key."""
    args = ["--api", "chat", "--mode", "stream", "--text", f"tokens {TOKENS}", "--token", KEY, "--seconds", str(seconds), "--warmup", "0.2", "-n"]
    path = "v1/chat/completions"
    with Server(MODEL_SERVER, core=1) as model:
        config = write_llm_config(model, f"tokens:\n  - {{token: {KEY}, principal: bench}}\n")
        mine = load(ours(config=config), *args, "16", path=path)
        if not os.access(os.path.join(LITELLM, "litellm"), os.X_OK):
            raise Skip("LiteLLM is not installed (`scripts/setup bench` tries to; log: .setup/pip-litellm.log)")
        try:
            with Litellm("openai/bench-1", f"{model.url}v1", "none") as theirs:
                bench(theirs.url + path, *args, "1", "--requests", "1")
                their = check_tokens(load_at(theirs, *args, "4", path=path), connections=4)
                return check_tokens(mine)["events_per_cpu_s"], their["events_per_cpu_s"]
        except Failed as e:
            raise Skip(f"LiteLLM: {e}") from e


def many_loops():
    """The slowest of a hundred tokens, in ms, and how many streams failed."""
    with Server(MODEL_SERVER, core=1) as model, Server(*ours(config=write_llm_config(model))) as server:
        port = server.url.rstrip("/").rsplit(":", 1)[1]
        p = subprocess.run(pinned(1, TOKEN_READER, port, str(LOOPS), str(PER_SECOND * SECONDS), str(1000 // PER_SECOND)),
                           capture_output=True, text=True)
    if p.returncode:
        raise Failed(f"token_reader: {p.stderr}")
    got = json.loads(p.stdout)
    if got["failed"]:
        raise Failed(f"{got['failed']} of {LOOPS} loops did not complete: {p.stdout}")
    if got["seconds"] > SECONDS * LATEST:
        raise Failed(f"the streams took {got['seconds']} s for tokens of {SECONDS} s")
    return got["latency_us"]["p99"] / 1000, got["latency_us"]["p50"] / 1000


def loop_memory():
    """KiB of a loop that waits for its model, with the connection of its client; and the most that is allowed."""
    with Server(MODEL_SERVER, core=1) as model:
        got = load(ours(config=write_llm_config(model)), "--mode", "hold", "--text", "wait 600000", "-n", str(LOOPS), "--seconds", "1", warm=0)
    return got["bytes_per_stream"] / 1024, MOST_KIB


def token_row(shape, seconds):
    how, tokens = shape
    return Row(f"llm: streams of {TOKENS} tokens of a model, {how}", "CPU microseconds a token", MOST_TIMES,
               lambda: token_costs(tokens, seconds), goal_is_least=False, against="the bench agent and a bare libcurl reader")


def model_rows(seconds):
    return [*(token_row(shape, seconds) for shape in SHAPES),
            Row(f"llm: Chat Completions, streams of {TOKENS} tokens", "tokens per CPU-second", TIMES_LITELLM,
                lambda: litellm_tokens(seconds), against="LiteLLM"),
            Row(f"llm: {LOOPS:,} loops at {PER_SECOND} tokens/s on one core: added to a token, the slowest of a hundred (p99)", "ms", None,
                many_loops, against="half of them (p50)"),
            Row(f"llm: memory of a running loop and its client ({LOOPS:,} wait for their model)", "KiB (RssAnon)", 1, loop_memory,
                goal_is_least=False, against="goal")]
