"""The functions and types for graph authors, without a worker."""
import copy
import inspect
import json
import pickle
import unittest

from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from lib import tap

import aion.langgraph.authoring as authoring
import aion.langgraph.stream as stream
from dragoman import langgraph
from dragoman.langgraph import A2AInbox, A2AOutbox


def emitted(function, *args, **named):
    values = []
    function(values.append, *args, **named)
    json.dumps(values, allow_nan=False)
    return [v["a2a"] for v in values]


class Emit(unittest.TestCase):
    def test_signatures(self):
        """the four functions have the documented signatures, in aion.langgraph.stream and dragoman.langgraph [R003-30 R003-31 R003-34 R003-35 R003-37]"""
        expected = {"emit_file": "(writer, *, url=None, base64=None, mime_type, name=None, append=False, is_last_chunk=True)",
                    "emit_data": "(writer, data, name=None, append=False, is_last_chunk=True)",
                    "emit_message": "(writer, message)", "emit_task_metadata": "(writer, metadata)"}
        for name, signature in expected.items():
            self.assertIs(getattr(stream, name), getattr(langgraph, name))
            made = inspect.signature(getattr(stream, name))
            plain = made.replace(parameters=[p.replace(annotation=p.empty) for p in made.parameters.values()], return_annotation=made.empty)
            self.assertEqual(str(plain), signature)

    def test_namespace(self):
        """aion is a namespace package: there is no aion/__init__.py that would hide others"""
        import aion
        self.assertIsNone(getattr(aion, "__file__", None))

    def test_file(self):
        """emit_file: url or base64, the name file by default [R003-31 R003-32]"""
        self.assertEqual(emitted(stream.emit_file, url="https://x/y", mime_type="a/b"),
                         [{"type": "artifact", "kind": "file", "name": "file", "mime_type": "a/b", "url": "https://x/y", "append": False, "is_last_chunk": True}])
        self.assertEqual(emitted(stream.emit_file, base64="QQ==", mime_type="a/b", name="n", append=True, is_last_chunk=False),
                         [{"type": "artifact", "kind": "file", "name": "n", "mime_type": "a/b", "base64": "QQ==", "append": True, "is_last_chunk": False}])

    def test_file_large(self):
        """emit_file: a file that is too large for one event is sent in several; above the limit it is a ValueError [R003-31 R003-32]"""
        whole = "QUJD" * (11 << 18)
        parts = emitted(stream.emit_file, base64=whole[:76] + "\n" + whole[76:], mime_type="a/b", name="n")
        self.assertEqual([(len(p["base64"]) % 4, p["append"], p["is_last_chunk"]) for p in parts], [(0, False, False), (0, True, False), (0, True, True)])
        self.assertEqual("".join(p["base64"] for p in parts), whole)
        with self.assertRaisesRegex(ValueError, "the limit file_bytes is 20971520"):
            emitted(stream.emit_file, base64="A" * (28 << 20), mime_type="a/b")

    def test_file_wrong(self):
        """emit_file: both or neither of url and base64 is a ValueError, bytes a TypeError; nothing is sent [R003-31]"""
        with self.assertRaisesRegex(ValueError, "exactly one of url and base64, got both"):
            emitted(stream.emit_file, url="u", base64="QQ==", mime_type="a/b")
        with self.assertRaisesRegex(ValueError, "exactly one of url and base64, got neither"):
            emitted(stream.emit_file, mime_type="a/b")
        with self.assertRaisesRegex(TypeError, "expected base64 to be a string, got bytes"):
            emitted(stream.emit_file, base64=b"A", mime_type="a/b")
        with self.assertRaises(TypeError):
            emitted(stream.emit_file, url="u")

    def test_data(self):
        """emit_data: any JSON value, the name data by default [R003-34]"""
        for value in ({"a": [1, 2.5, None, True]}, [1], "text", 0, None, (1, 2)):
            self.assertEqual(emitted(stream.emit_data, value)[0]["data"], json.loads(json.dumps(value)))
        self.assertEqual(emitted(stream.emit_data, {}, "n", True, False),
                         [{"type": "artifact", "kind": "data", "name": "n", "data": {}, "append": True, "is_last_chunk": False}])
        self.assertEqual(emitted(stream.emit_data, 1)[0]["name"], "data")

    def test_data_copied(self):
        """emit_data: what the node changes afterwards is not in the event"""
        values, data = [], {"a": [1]}
        stream.emit_data(values.append, data)
        data["a"].append(2)
        self.assertEqual(values[0]["a2a"]["data"], {"a": [1]})

    def test_data_wrong(self):
        """emit_data: a value that is not JSON is a TypeError that names its place [R003-34]"""
        itself = []
        itself.append(itself)
        for value, text in (({"results": [1, {"when": {1}}]}, r"data\['results'\]\[1\]\['when'\] is of type set"),
                            ({"a": float("nan")}, r"data\['a'\] is nan"), ([float("inf")], r"data\[0\] is inf"), (object(), "data is of type object"),
                            ({1: 2}, "data has a key of type int"), (itself, r"data\[0\] contains itself"), ("\ud800", "lone surrogate"),
                            (b"x", "data is of type bytes")):
            with self.assertRaisesRegex(TypeError, text):
                emitted(stream.emit_data, value)

    def test_message(self):
        """emit_message: an AIMessage, or an AIMessageChunk, which is marked [R003-35 R003-36]"""
        self.assertEqual(emitted(stream.emit_message, AIMessage(content="x", id="i")), [{"type": "message", "message": {"type": "ai", "content": "x", "id": "i"}}])
        self.assertEqual(emitted(stream.emit_message, AIMessageChunk(content="x", id="i"))[0]["message"], {"type": "ai", "content": "x", "id": "i", "chunk": True})
        for wrong in (HumanMessage(content="x"), "text", {"role": "assistant", "content": "x"}):
            with self.assertRaisesRegex(TypeError, "expected an AIMessage or AIMessageChunk"):
                emitted(stream.emit_message, wrong)

    def test_blocks(self):
        """content blocks of providers have one form, tool calls are apart, reasoning is not text"""
        message = AIMessage(content=[{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "answer"},
                                     {"type": "image_url", "image_url": {"url": "https://x/y.png"}}],
                            tool_calls=[{"name": "f", "args": {}, "id": "c"}], response_metadata={"model_provider": "anthropic"})
        made = emitted(stream.emit_message, message)[0]["message"]
        self.assertEqual([b["type"] for b in made["content"]][:2], ["reasoning", "text"])
        self.assertEqual(made["tool_calls"][0]["name"], "f")
        from dragoman._messages import text_of
        self.assertEqual(text_of(message), "answer")
        self.assertEqual(text_of(AIMessage(content="answer", additional_kwargs={"reasoning_content": "hm"})), "answer")

    def test_metadata(self):
        """emit_task_metadata: the dictionary as it is; protected keys are the server's business [R003-37]"""
        self.assertEqual(emitted(stream.emit_task_metadata, {"progress": 1, "aion:x": 2}), [{"type": "task_metadata", "metadata": {"progress": 1, "aion:x": 2}}])
        with self.assertRaisesRegex(TypeError, "expected a dictionary, got list"):
            emitted(stream.emit_task_metadata, [])
        with self.assertRaisesRegex(TypeError, r"metadata\['when'\] is of type object"):
            emitted(stream.emit_task_metadata, {"when": object()})

    def test_plain_langgraph(self):
        """a graph that uses them runs in plain LangGraph [R003-30]"""
        from langgraph.graph import START, StateGraph

        def node(state: dict, writer):
            stream.emit_data(writer, {"x": 1})
            return {"n": 1}
        builder = StateGraph(dict)
        builder.add_node("node", node)
        builder.add_edge(START, "node")
        self.assertEqual(builder.compile().invoke({"n": 0}), {"n": 1})

    def test_authoring(self):
        """aion.langgraph.authoring: emit_message and emit_artifact of newer graphs"""
        self.assertEqual(emitted(authoring.emit_message, AIMessage(content="x", id="i"))[0]["message"].get("chunk"), None)
        self.assertTrue(emitted(authoring.emit_message, AIMessage(content="x", id="i"), ephemeral=True)[0]["message"]["chunk"])
        from a2a.types import Artifact, Part
        made = emitted(authoring.emit_artifact, Artifact(name="n", parts=[Part(text="hi"), Part(url="https://x", media_type="a/b"), Part(raw=b"A")]), is_last_chunk=False)
        self.assertEqual([(a["name"], a["append"], a["is_last_chunk"], a.get("url"), a.get("base64"), a["mime_type"]) for a in made],
                         [("n", False, False, None, "aGk=", "text/plain"), ("n", True, False, "https://x", None, "a/b"),
                          ("n", True, False, None, "QQ==", "application/octet-stream")])
        self.assertEqual(emitted(authoring.emit_artifact, {"parts": [{"kind": "data", "data": {"x": 1}}]})[0]["data"], {"x": 1})


class Boxes(unittest.TestCase):
    inbox = A2AInbox({"task": {"id": "t", "contextId": "c"}, "message": {"messageId": "m", "parts": [{"kind": "file", "file": {"mimeType": "a/b"}}]}, "metadata": {"a": 1}})

    def test_access(self):
        """A2AInbox: by key, by attribute, in camel and snake case; absent members of A2A are None [R003-06]"""
        inbox = self.inbox
        self.assertEqual((inbox["message"]["messageId"], inbox.message.messageId, inbox.message.message_id, inbox.task.context_id), ("m", "m", "m", "c"))
        self.assertEqual((inbox.message.parts[0].root.file.mime_type, inbox.message["parts"][0]["file"]["mimeType"]), ("a/b", "a/b"))
        self.assertIsNone(inbox.message.reference_task_ids)
        with self.assertRaisesRegex(AttributeError, "has no member 'partz'; members: messageId, parts"):
            inbox.message.partz
        self.assertEqual(json.loads(json.dumps(inbox)), inbox)

    def test_copies(self):
        """A2AInbox: copies and pickles are A2AInbox"""
        for made in (copy.deepcopy(self.inbox), copy.copy(self.inbox), pickle.loads(pickle.dumps(self.inbox))):
            self.assertIsInstance(made, A2AInbox)
            self.assertEqual(made.message.message_id, "m")

    def test_outbox(self):
        """A2AOutbox: a Message or Task from keywords, dicts, pydantic and protobuf [R003-10]"""
        from a2a.types import Message, Part
        self.assertEqual(A2AOutbox(message={"parts": []}), {"parts": []})
        self.assertEqual(A2AOutbox(task={"id": "t"}).id, "t")
        self.assertEqual(A2AOutbox(message=Message(message_id="m", parts=[Part(text="x")])), {"messageId": "m", "parts": [{"text": "x"}]})
        self.assertEqual(A2AOutbox(parts=[{"text": "x"}]).parts[0].text, "x")
        for wrong in ({"value": "text"}, {"message": {}, "task": {}}):
            with self.assertRaises((TypeError, ValueError)):
                A2AOutbox(**wrong)

    def test_pydantic(self):
        """A2AInbox is a field type of pydantic models"""
        from pydantic import BaseModel, ValidationError

        class State(BaseModel):
            inbox: A2AInbox
        self.assertEqual(State(inbox={"message": {"messageId": "m"}}).inbox.message.message_id, "m")
        self.assertEqual(State(inbox=self.inbox).model_dump()["inbox"]["task"]["id"], "t")
        with self.assertRaises(ValidationError):
            State(inbox="text")


if __name__ == "__main__":
    tap.main()
