"""A live server with an agent of `type: llm` and the scripted model, and the messages that its tests send."""

import json

from live import HERE, live

with open(HERE.parents[1] / 'llm.json', encoding='utf-8') as f:
    ASSISTANT = json.load(f)

REMOVE, ASK, CALL = 'call remove {"path": "old.txt"}', 'ask Which colour?', 'call weather {"city": "Oslo"}'
WEATHER = {'name': 'weather', 'description': 'the weather', 'parameters': {'type': 'object', 'properties': {'city': {'type': 'string'}}}}
SLOW, STEER = 'slow 60 ' + 'word ' * 80 + 'end', 'echo steered'


def llm():
    return live(agents=[{**ASSISTANT, 'default': True}])
