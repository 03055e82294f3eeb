"""PyPI `ag-ui-protocol` parses every event that convert writes, and says the same again."""

import json
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from world import convert, equal, events, pinned, run, stories, tell, test

from ag_ui.core import Event, RunAgentInput
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter

EVENT = TypeAdapter(Event)


def reads(s, target):
    def check():
        for event in events(tell(s, target)):
            parsed = EVENT.validate_python(event)
            equal(parsed.model_dump(mode='json', by_alias=True, exclude_none=True), without_nulls(event), event['type'])
    return check


def without_nulls(value):
    """Its dump leaves nulls out, also where the protocol has them."""
    if isinstance(value, dict):
        return {k: without_nulls(v) for k, v in value.items() if v is not None}
    return [without_nulls(v) for v in value] if isinstance(value, list) else value


def written(s):
    """What its encoder writes is read as the same events."""
    def check():
        want = events(tell(s, 'ag-ui'))
        encoder = EventEncoder()
        text = ''.join(encoder.encode(EVENT.validate_python(e)) for e in want)
        if any(None in e.values() for e in want):
            return  # see above
        equal(events(convert('ag-ui', 'ag-ui', text)), want, 'the events')
    return check


def requests():
    request = {'id': 'chat', 'messages': [
        {'id': 'u', 'role': 'user', 'parts': [{'type': 'text', 'text': 'Look'}, {'type': 'file', 'mediaType': 'image/png', 'url': 'https://x/y.png'}]},
        {'id': 'a', 'role': 'assistant', 'parts': [
            {'type': 'dynamic-tool', 'toolName': 'f', 'toolCallId': 'c', 'state': 'output-available', 'input': {}, 'output': {'n': 1}},
            {'type': 'text', 'text': 'Yes'}]}]}
    for target in 'ag-ui', 'ag-ui-0':
        parsed = RunAgentInput.model_validate_json(convert('ai-sdk', target, json.dumps(request)))
        equal(parsed.thread_id, 'chat', 'the thread')
        equal([m.role for m in parsed.messages], ['user', 'assistant', 'tool', 'assistant'], 'who spoke')


pinned('ag-ui-protocol')
for story in stories():
    test(f'ag-ui-protocol parses {story["name"]}', reads(story, 'ag-ui'))
    test(f'ag-ui-protocol parses {story["name"]}, for peers of before', reads(story, 'ag-ui-0'))
    test(f'ag-ui-protocol writes {story["name"]} as we read it', written(story))
test('ag-ui-protocol parses our requests', requests)
run()
