"""kill -9 of one server after the other, under clients of SDKs and of this project.

DRAGOMAN_KILLS: how often (5; the long target: 50)."""
import os
import random
import time

from kit.sdk import PROGRAMS, Sdk
from kit.trial import Trial
from lib.tap import check, soon, test

KILLS = int(os.environ.get("DRAGOMAN_KILLS", "5"))
SEED = int(os.environ.get("DRAGOMAN_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 24)


@test(f"kill -9 of a replica, {KILLS} times, under a2a-sdk and openai: nothing acknowledged is lost, nothing comes twice", timeout=600 + 20 * KILLS)
def _():
    print(f"# DRAGOMAN_SEED={SEED}", flush=True)
    pick = random.Random(f"kills {SEED}")
    with Trial(SEED) as t:
        sdks = [Sdk(program, t.cluster, SEED, 2) for program in PROGRAMS]
        t.load.start(3)
        soon(lambda: all(len(s.ops) > 2 for s in sdks), "the SDKs do not start", 120)
        for n in range(KILLS):
            r = pick.choice(t.cluster.replicas)
            r.kill()
            time.sleep(0.1 + pick.random() * 0.4)
            r.revive()
            time.sleep(0.4 + pick.random() * 0.6)
        soon(lambda: all(len(s.texts()) >= KILLS // 2 for s in sdks), "an SDK finishes too few texts", 180)
        for s in sdks:
            t.load.ops += s.stop(180)
        found = t.finish()
        taken = int(t.cluster.sql("SELECT count(*) FROM dragoman.tasks WHERE fence>1"))
        print(f"# {t.counts()}, {taken} tasks had a second owner")
        check(taken, "no task was taken over: the kills hit no server that had one")
        check(not found, lambda: "\n".join(str(v)[:1000] for v in found[:10]))
