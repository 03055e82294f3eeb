"""What an event costs that an agent of type a2a relays from another server: rows for scripts/bench-server."""
import json
import os
import subprocess

from kit import BUILD, DRAGOMAN, FOLDER, Failed, Row, Server, Skip, load, load_at, ours, pinned

BARE_READER = os.path.join(BUILD, "tests/bench/bare_reader")
MOST_TIMES = 1.5
SHAPES = [("at once", "chunks 100"), ("a turn of the loop between them", "chunks 100 yield")]


def write_relay_config(url, more=""):
    """A server whose only agent is the one at this address; its id is that of the bench agent."""
    path = os.path.join(FOLDER, "relay.yaml")
    with open(path, "w", encoding="utf-8") as f:
        f.write("loops: 1\nlog:\n  level: warn\nagents:\n  - id: bench\n    type: a2a\n"
                f"    settings: {{url: \"{url.rstrip('/')}\"}}\n{more}")
    checked = subprocess.run([DRAGOMAN, "serve", "--check", "-c", path], capture_output=True, text=True)
    if "unknown agent type" in checked.stderr:
        raise Skip("this build has no agents of type a2a")
    if checked.returncode:
        raise Failed(f"the configuration of the relay: {checked.stderr}")
    return path


def bare_reader_cost(url, text, seconds, api="a2a"):
    p = subprocess.run(pinned(0, BARE_READER, url, str(seconds), text, api), capture_output=True, text=True)
    if p.returncode:
        raise Failed(f"bare_reader: {p.stderr}")
    return json.loads(p.stdout)["cpu_us_per_event"]


def relay_costs(text, seconds):
    """CPU microseconds an event: of the relay; of the agent itself and a bare reader together."""
    args = ["--mode", "stream", "--text", text, "--seconds", str(seconds), "--warmup", "0.2", "-n", "16"]
    with Server(*ours(), core=1) as agent:
        config = write_relay_config(agent.url)
        with Server(*ours(config=config)) as relay:
            relayed = 1e6 / load_at(relay, *args)["events_per_cpu_s"]
        bare = bare_reader_cost(agent.url, text, seconds)
    return relayed, 1e6 / load(ours(), *args)["events_per_cpu_s"] + bare


def relay_row(shape, seconds):
    how, text = shape
    return Row(f"relay: streams of 100 chunks of a remote A2A agent, {how}", "CPU microseconds an event", MOST_TIMES,
               lambda: relay_costs(text, seconds), goal_is_least=False, against="the agent itself and a bare libcurl reader")


def relay_rows(seconds):
    return [relay_row(shape, seconds) for shape in SHAPES]
