"""The benchmark compares like with like: plain.py gives what dragoman gives."""
import json
import os
import sys
import unittest

import tap

sys.path.insert(0, os.path.join(tap.TREE, "tests", "bench", "python"))
import bench
import plain

import dragoman


class Bench(unittest.TestCase):
    def test_texts(self):
        """plain Python converts the benchmark's text to the same"""
        text = bench.history(10000)
        for to, theirs in (("a2a-1.0", plain.to_10), ("openai-chat", plain.to_chat)):
            self.assertEqual(json.loads(dragoman.convert(text, "a2a-0.3", to)), json.loads(theirs(text)))

    def test_calls(self):
        """plain Python's functions give the same"""
        for message in bench.MESSAGES:
            self.assertEqual(dragoman.convert_a2a_message_to_openai(message), plain.message_to_openai(message))
            self.assertEqual(dragoman.convert_a2a_message_to_agui_event(message), plain.message_to_event(message))


if __name__ == "__main__":
    tap.main()
