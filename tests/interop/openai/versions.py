"""The package that the other programs load is the one that requirements-openai.txt names."""
import importlib.metadata
import pathlib
import re

pinned = re.search(r'^openai==(.*)$', pathlib.Path('requirements-openai.txt').read_text(), re.M)[1]
found = importlib.metadata.version('openai')
print(f'{"ok" if found == pinned else "not ok"} 1 - PyPI openai is {pinned}\n1..1')
