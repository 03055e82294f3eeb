#!/usr/bin/env python3
"""convert() of the Python package against the same work in plain Python (plain.py): same text, same run.

The marks: on text of 1 MiB and more, bytes and str, 5 times as fast in the median; a function on dicts takes at most the time of
plain Python, over four messages: two texts, a call and a result.
Time is that of the thread, so that what else runs on the machine counts little.
"""
import json
import os
import statistics
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
sys.path[:0] = [HERE, os.path.join(ROOT, "python")]
BUILT = os.path.join(ROOT, "build-bench", "libdragoman.so")
if os.path.exists(BUILT):
    os.environ.setdefault("DRAGOMAN_LIB", BUILT)

import plain

import dragoman

MARK, ROUNDS, TEXT_BYTES = 5, 15, 1 << 20
CALLS_MARK, CALLS = 1.0, 2000

TEXT = {"kind": "message", "messageId": "0198a7c2-1111-7000-8000-000000000001", "contextId": "ctx-7", "role": "user",
        "parts": [{"kind": "text", "text": "What's the weather in Oakland tomorrow, and should I take an umbrella?"}],
        "metadata": {"canonical_type": "TextMessageContentEvent"}}
CALL = {"kind": "message", "messageId": "0198a7c2-1111-7000-8000-000000000002", "contextId": "ctx-7", "role": "agent",
        "parts": [{"kind": "data", "data": {"tool_calls": [
            {"call_id": "call_abc123", "name": "get_weather", "arguments": {"location": "Oakland", "days": 2}}]}}]}
RESULT = {"kind": "message", "messageId": "0198a7c2-1111-7000-8000-000000000003", "contextId": "ctx-7", "role": "user",
          "parts": [{"kind": "data", "data": {"tool_results": [
              {"call_id": "call_abc123", "name": "get_weather", "output": "Sunny, 72°F"}]}}]}
ANSWER = {"kind": "message", "messageId": "0198a7c2-1111-7000-8000-000000000004", "contextId": "ctx-7", "role": "agent",
          "parts": [{"kind": "text", "text": "It will be sunny, 72°F. " * 8}],
          "metadata": {"canonical_type": "TextMessageEndEvent"}}
MESSAGES = [TEXT, CALL, RESULT, ANSWER]


def history(size):
    one = len(json.dumps(MESSAGES, ensure_ascii=False).encode())
    return json.dumps(MESSAGES * (size // one + 1), ensure_ascii=False)


def seconds(function):
    began = time.thread_time()
    function()
    return time.thread_time() - began


def compare(ours, theirs, rounds):
    """In turns, so that what disturbs one disturbs the other: (median of ours, of theirs, of the ratio)"""
    pairs = [(seconds(ours), seconds(theirs)) for _ in range(rounds)]
    return (statistics.median(o for o, _ in pairs), statistics.median(t for _, t in pairs),
            statistics.median(t / o for o, t in pairs))


def texts():
    """Prints a row per conversion; the least ratio."""
    least = None
    for size in (TEXT_BYTES, 8 * TEXT_BYTES):
        text = history(size)
        given = text.encode()
        print(f"text of {len(given) / (1 << 20):.1f} MiB, {ROUNDS} rounds")
        for to, theirs in (("a2a-1.0", plain.to_10), ("openai-chat", plain.to_chat)):
            if json.loads(dragoman.convert(text, "a2a-0.3", to)) != json.loads(theirs(text)):
                sys.exit(f"bench: plain.py gives another {to} than dragoman")
            fresh = iter([given.decode() for _ in range(ROUNDS)])  # strings that were not read before
            for kind, ours, them in (
                    ("bytes", lambda: dragoman.convert(given, "a2a-0.3", to), lambda: theirs(given).encode()),
                    ("str", lambda: dragoman.convert(next(fresh), "a2a-0.3", to), lambda: theirs(text))):
                o, t, ratio = compare(ours, them, ROUNDS)
                print(f"  a2a-0.3 -> {to:<12} {kind:<6} {o * 1e3:7.2f} ms, {len(given) / o / 1e6:5.0f} MB/s"
                      f"   plain Python {t * 1e3:7.2f} ms   ratio {ratio:5.1f}")
                least = ratio if least is None else min(least, ratio)
    return least


def calls():
    """Prints a row per function; the highest ratio of ours to plain Python."""
    worst = 0
    print("one dict, per call" + ("" if dragoman._extension.native else ", without the extension module"))
    rows = (("convert_a2a_message_to_openai", dragoman.convert_a2a_message_to_openai, plain.message_to_openai),
            ("convert_a2a_message_to_agui_event", dragoman.convert_a2a_message_to_agui_event, plain.message_to_event))
    for name, ours, theirs in rows:
        for message in MESSAGES:
            if ours(message) != theirs(message):
                sys.exit(f"bench: plain.py's {name} gives something else")
        given = MESSAGES * (CALLS // len(MESSAGES))
        o, t, ratio = compare(lambda: [ours(m) for m in given], lambda: [theirs(m) for m in given], ROUNDS)
        print(f"  {name:<34} {o / CALLS * 1e6:6.2f} us   plain Python {t / CALLS * 1e6:6.2f} us   ratio {1 / ratio:5.2f}")
        worst = max(worst, 1 / ratio)
    return worst


def main():
    print(f"the Python package {dragoman.__version__}, Python {sys.version.split()[0]}")
    least = texts()
    worst = calls()
    print(f"the mark, a dict in at most {CALLS_MARK:g} of the time of plain Python: {'reached' if worst <= CALLS_MARK else 'missed'}, "
          f"the highest is {worst:.2f}")
    print(f"the mark, {MARK} times plain Python on text of 1 MiB and more: {'reached' if least >= MARK else 'missed'}, "
          f"the least is {least:.1f}")
    return least < MARK or worst > CALLS_MARK


if __name__ == "__main__":
    sys.exit(main())
