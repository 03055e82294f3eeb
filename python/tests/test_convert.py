"""convert() and Converter: text from one format to another."""
import gc
import json
import threading
import unittest

import tap

import dragoman
from dragoman import Converter, ConvertError, convert

HI = '{"role":"user","parts":[{"kind":"text","text":"Hé"}]}'
CHAT = '{"role":"user","content":"Hé"}\n'


def update(text, append, last):
    return {"kind": "artifact-update", "taskId": "t", "contextId": "c", "append": append, "lastChunk": last,
            "artifact": {"artifactId": "a", "parts": [{"kind": "text", "text": text}]}}


def sse(*values):
    return "".join(f"data: {json.dumps(v)}\n\n" for v in values).encode()


STREAM = sse(update("Hel", False, False), update("lo", True, True),
             {"kind": "status-update", "taskId": "t", "contextId": "c", "status": {"state": "completed"}, "final": True})


class Convert(unittest.TestCase):
    def test_text(self):
        """str gives str, bytes give bytes"""
        self.assertEqual(convert(HI, "a2a-0.3", "openai-chat"), CHAT)
        self.assertEqual(convert(HI.encode(), "auto", "openai-chat"), CHAT.encode())

    def test_options(self):
        """options are heard"""
        self.assertEqual(convert(HI, "auto", "openai-chat", framing="array"), f"[{CHAT[:-1]}]\n")
        self.assertEqual(convert(HI, "auto", "openai-chat", object="message", as_="messages"), CHAT)
        ids = {json.loads(convert(HI, "auto", "a2a-1.0", seed=s))["messageId"] for s in (None, "a", "b", "a")}
        self.assertEqual(len(ids), 3)

    def test_compact(self):
        """compact is heard"""
        events = json.dumps([{"type": "text-message-chunk", "messageId": "m", "role": "assistant", "delta": "ab"},
                             {"type": "text-message-end", "messageId": "m", "message": {"role": "assistant", "content": "ab"}}])
        for compact, n in ((True, 1), (False, 2)):
            got = json.loads(convert(events, "ag-ui-simple", "ag-ui-simple", compact=compact))
            self.assertEqual(len(got), n, got)

    def test_wrong_options(self):
        """wrong options are refused"""
        for options, words in (({"to": "nonsense"}, "nonsense"), ({"framing": "xml"}, "sse"),
                               ({"object": "thing"}, "kind"), ({"answer_source": "guess"}, "status")):
            with self.subTest(**options), self.assertRaisesRegex(ConvertError, words):
                convert(HI, **{"from_": "auto", "to": "openai-chat", **options})
        with self.assertRaises(TypeError):
            convert(HI, "auto", "openai-chat", colour="red")
        with self.assertRaisesRegex(TypeError, "got dict"):
            convert(json.loads(HI), "auto", "openai-chat")

    def test_binary(self):
        """a binary format accepts and returns bytes"""
        event = '{"type":"STEP_STARTED","stepName":"working"}'
        binary = convert(event.encode(), "ag-ui", "ag-ui-proto")
        self.assertIn(b"working", binary)
        self.assertEqual(json.loads(convert(binary, "ag-ui-proto", "ag-ui", framing="array")), [json.loads(event)])
        with self.assertRaisesRegex(TypeError, "bytes"):
            convert(event, "ag-ui", "ag-ui-proto")

    def test_error(self):
        """an error of text has its line and column"""
        with self.assertRaises(ConvertError) as caught:
            convert('{"role": "user",\n "parts": [7]}', "a2a-0.3", "openai-chat")
        self.assertEqual((caught.exception.pointer, caught.exception.line, caught.exception.column), ("/parts/0", 2, 12))
        with self.assertRaises(ConvertError) as caught:
            convert('{"role": "user"', "a2a-0.3", "openai-chat")
        self.assertEqual(caught.exception.code, "PARSE")

    def test_large(self):
        """a megabyte of messages"""
        one = json.loads(HI)
        got = json.loads(convert(json.dumps([one] * 20000), "a2a-0.3", "openai-chat"))
        self.assertEqual(got, [json.loads(CHAT)] * 20000)

    def test_formats(self):
        """formats are listed"""
        names = [f.name for f in dragoman.formats()]
        self.assertLessEqual({"a2a-1.0", "a2a-0.3", "openai-chat", "ag-ui", "ag-ui-simple"}, set(names))
        self.assertTrue(all(f.about for f in dragoman.formats()))


class Streams(unittest.TestCase):
    def test_pieces(self):
        """a stream comes out as it goes in, in whatever pieces"""
        whole = convert(STREAM, "a2a-0.3", "a2a-1.0")
        for size in (1, 7, 64, 10000):
            with self.subTest(size=size), Converter("a2a-0.3", "a2a-1.0") as converter:
                pieces = [converter.feed(STREAM[i:i + size]) for i in range(0, len(STREAM), size)]
                self.assertEqual(b"".join(pieces) + converter.end(), whole)
                if size < 64:
                    self.assertGreater(sum(bool(p) for p in pieces), 1)

    def test_kinds_of_bytes(self):
        """str, bytes, bytearray and memoryview are fed"""
        with Converter("a2a-0.3", "openai-chat") as converter:
            out = converter.feed(HI[:10]) + converter.feed(HI[10:20].encode())
            out += converter.feed(bytearray(HI[20:30].encode())) + converter.feed(memoryview(HI[30:].encode()))
            self.assertEqual(out + converter.end(), CHAT.encode())

    def test_output_before_the_fault(self):
        """what was converted before a fault is there"""
        with Converter("a2a-0.3", "a2a-1.0") as converter:
            with self.assertRaises(ConvertError) as caught:
                converter.feed(sse(update("Hel", False, False), {"kind": "artifact-update"}))
            self.assertIn(b'"Hel"', caught.exception.output)
            with self.assertRaises(ConvertError):
                converter.end()

    def test_closed(self):
        """a closed converter raises an error"""
        converter = Converter("auto", "a2a-1.0")
        converter.close()
        converter.close()
        for use in (lambda: converter.feed(b"x"), converter.end):
            with self.assertRaisesRegex(ValueError, "closed"):
                use()

    def test_thrown_away(self):
        """converters that are not closed are freed, also those whose creation failed"""
        for _ in range(100):
            Converter("auto", "a2a-1.0").feed(STREAM[:100])
            with self.assertRaises(ConvertError):
                Converter("auto", "nothing")
        gc.collect()

    def test_threads(self):
        """one converter for several threads, each in its turn"""
        converter = Converter("a2a-0.3", "openai-chat", framing="lines")
        got, lock = [], threading.Lock()

        def work():
            for _ in range(200):
                out = converter.feed((HI + "\n").encode())
                with lock:
                    got.append(out)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        got.append(converter.end())
        self.assertEqual(b"".join(got), CHAT.encode() * 800)


if __name__ == "__main__":
    tap.main()
