"""Runs that end when no client reads them: the clients of all servers count."""
from kit import clients
from kit.cluster import Cluster
from lib.a2a import RPC1, Client, task_of
from lib.server import agent, settings
from lib.tap import each, same


class Single:
    """A client of one server instead of the balancer."""
    errors = "1.0.1"

    def __init__(self, replica):
        self.address = replica.listen


@each("a run goes on while a client of another server reads it (wakeup: {})", ["notify", "poll"], timeout=120)
def _(wakeup):
    config = settings(agents=[agent("llm", id="assistant", settings={"base_url": "mock:"})])
    config["on_disconnect"], config["disconnect_grace_s"] = {"a2a": "cancel"}, {"a2a": 4}
    with Cluster(2, config, wakeup=wakeup) as cluster:
        owner, other = (Client(Single(r), RPC1, base="/agents/assistant") for r in cluster.replicas)
        started = owner.stream("slow 100 " + clients.TEXT * 10)  # longer than the grace
        task = task_of(started.next())
        reader = other.subscribe(task, last=0)
        reader.next()
        started.close()
        reader.rest(60)
        same(other.get(task).state, "TASK_STATE_COMPLETED", "the state of the task")
