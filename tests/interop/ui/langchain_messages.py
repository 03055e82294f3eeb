"""PyPI `langchain-core` loads what convert writes: text once, calls once, arguments whole; and we read all its forms."""

import json
import sys

sys.path.insert(0, __file__.rsplit('/', 1)[0] + '/lib')
from world import convert, equal, events, pinned, run, stories, tell, test

from langchain_core.load import dumpd
from langchain_core.messages import (AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage, messages_from_dict,
                                     messages_to_dict)


def calls_of(messages):
    return [{'id': c['id'], 'name': c['name'], 'arguments': c['args']} for m in messages if isinstance(m, AIMessage) for c in m.tool_calls]


def results_of(messages):
    return {m.tool_call_id: m.content for m in messages if isinstance(m, ToolMessage)}


def texts_of(messages):
    return [m.text for m in messages if isinstance(m, AIMessage) and m.text]


def thoughts_of(messages):
    return ''.join(b['reasoning'] for m in messages if isinstance(m, AIMessage) for b in m.content_blocks if b['type'] == 'reasoning')


def check_story(s, messages):
    if s['ends'] != 'rejected':
        equal(texts_of(messages), s.get('texts') or ([s['text']] if s['text'] else []), 'the texts')
    equal(calls_of(messages), s['calls'], 'the calls')
    equal([m.invalid_tool_calls for m in messages if isinstance(m, AIMessage) and m.invalid_tool_calls], [], 'invalid calls')
    equal(results_of(messages), s['results'], 'the results')
    equal(thoughts_of(messages), s.get('thought', ''), 'what was thought')


def whole(s):
    return lambda: check_story(s, messages_from_dict(as_list(tell(s, 'langchain', '--as', 'messages'))))


def as_list(text):
    value = json.loads(text)
    return value if isinstance(value, list) else [value]


def streamed(s):
    """Chunks of one id add up to a message; a whole one has the last word on its text."""
    def check():
        by_id = {}
        for m in messages_from_dict(events(tell(s, 'langchain'))):
            known = by_id.get(m.id)
            if known is None or not isinstance(m, AIMessageChunk):
                by_id[m.id] = m
            elif isinstance(known, AIMessageChunk):
                by_id[m.id] = known + m
        check_story(s, list(by_id.values()))
        last = list(by_id.values())[-1]
        reason = {'failed': 'error', 'rejected': 'error', 'cancelled': 'cancelled', 'interrupt': 'interrupt', 'pending': 'tool_calls'}.get(s['ends'], 'stop')
        if s['name'] != 'corrected':
            equal(last.response_metadata['finish_reason'], reason, 'how it ended')
        if s.get('usage'):
            equal(last.usage_metadata['input_tokens'], s['usage'][0], 'the usage')
    return check


HISTORY = [
    SystemMessage('Be kind', id='s'),
    HumanMessage([{'type': 'text', 'text': 'Look'}, {'type': 'image', 'base64': 'aGk=', 'mime_type': 'image/png'}], id='u'),
    AIMessage([{'type': 'reasoning', 'reasoning': 'hm'}, {'type': 'text', 'text': 'Wait'}], id='a', tool_calls=[{'name': 'f', 'args': {'q': 1}, 'id': 'c', 'type': 'tool_call'}],
              usage_metadata={'input_tokens': 1, 'output_tokens': 2, 'total_tokens': 3}),
    ToolMessage('3', tool_call_id='c', id='t', status='error'),
    AIMessage('Three', id='b'),
]


def comes_back(form):
    def check():
        text = convert('langchain', 'langchain', json.dumps(form(HISTORY)))
        equal([type(m).__name__ for m in messages_from_dict(json.loads(text))], [type(m).__name__ for m in HISTORY], 'the kinds')
        for got, want in zip(messages_from_dict(json.loads(text)), HISTORY):
            equal(got.content, want.content, f'the content of {want.id}')
            equal(got.model_dump(), want.model_dump(), f'message {want.id}')
    return check


def through_chat():
    text = convert('langchain', 'openai-chat', json.dumps(messages_to_dict(HISTORY)), '--as', 'messages')
    chat = json.loads(text)
    equal([m['role'] for m in chat], ['system', 'user', 'assistant', 'tool', 'assistant'], 'who spoke')
    equal(json.loads(chat[2]['tool_calls'][0]['function']['arguments']), {'q': 1}, 'the arguments')
    back = messages_from_dict(json.loads(convert('openai-chat', 'langchain', text)))
    equal(texts_of(back), ['Wait', 'Three'], 'the texts')
    equal(results_of(back), {'c': '3'}, 'the results')


def chunks_are_read():
    chunks = [AIMessageChunk('Hel', id='msg_1'), AIMessageChunk('lo', id='lc_run--1'),
              AIMessageChunk('', id='msg_1', tool_call_chunks=[{'name': 'f', 'args': '{"a', 'id': 'c', 'index': 0}]),
              AIMessageChunk('', id='msg_1', tool_call_chunks=[{'name': None, 'args': '":1}', 'id': None, 'index': 0}], chunk_position='last'),
              ToolMessage('3', tool_call_id='c', id='t'), AIMessage('Hello', id='msg_1', tool_calls=[{'name': 'f', 'args': {'a': 1}, 'id': 'c'}])]
    for form in messages_to_dict, lambda list_: [m.model_dump(mode='json') for m in list_], lambda list_: [dumpd(m) for m in list_]:
        text = ''.join(f'data: {json.dumps(m)}\n\n' for m in form(chunks))
        agui = events(convert('langchain', 'ag-ui', text))
        equal(''.join(e['delta'] for e in agui if e['type'] == 'TEXT_MESSAGE_CONTENT'), 'Hello', 'the text')
        equal(''.join(e['delta'] for e in agui if e['type'] == 'TOOL_CALL_ARGS'), '{"a":1}', 'the arguments')
        equal([e['type'] for e in agui].count('TOOL_CALL_START'), 1, 'calls')
        equal(agui[-1]['type'], 'RUN_FINISHED', 'the end')


pinned('langchain-core')
for story in stories():
    test(f'messages_from_dict loads {story["name"]}', whole(story))
    test(f'the chunks of {story["name"]} add up', streamed(story))
test('stored messages come back', comes_back(messages_to_dict))
test('flat messages come back', comes_back(lambda m: [x.model_dump(mode='json') for x in m]))
test('constructors come back', comes_back(lambda m: [dumpd(x) for x in m]))
test('a history goes through Chat Completions', through_chat)
test('chunks in every form are read', chunks_are_read)
run()
