"""A program that is started for each message, as many agents are: most of a turn is the import."""
import json
import sys

import openai  # noqa: F401

message = json.loads(sys.stdin.readline())["message"]
print(json.dumps({"message": {"role": "ROLE_AGENT", "parts": [{"text": "You wrote: " + message["parts"][0]["text"]}]}}))
