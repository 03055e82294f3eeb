"""What the server reads from a project's langgraph.json or aion.yaml, for the stand-in."""
import json
import os

import yaml

from .stand_in import PROJECTS


def graphs_of(project):
    """The graphs and the settings of `initialize`."""
    folder = os.path.join(PROJECTS, project)
    named = os.path.join(folder, "aion.yaml")
    if os.path.exists(named):
        with open(named, encoding="utf-8") as f:
            return {"graphs": yaml.safe_load(f)["aion"]["agents"]}
    with open(os.path.join(folder, "langgraph.json"), encoding="utf-8") as f:
        declared = json.load(f)
    settings = {"dependencies": declared.get("dependencies", [])}
    env = declared.get("env")
    if isinstance(env, str):
        with open(os.path.join(folder, env), encoding="utf-8") as f:
            pairs = (line.strip().partition("=") for line in f if "=" in line)
            settings["env"] = {k: v.strip('"') for k, _, v in pairs}
    return {"graphs": declared["graphs"], "settings": settings}
