"""The programs of docs/clients/a2a-sdk.md, run unchanged; their output is compared with the text below them."""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / 'python/lib'))
from interop import ROOT, run, test, use_venv

use_venv('a2a-1')
sys.path.insert(0, str(ROOT / 'tests/wire'))
from lib.server import end_all, server

PAGE = (ROOT / 'docs/clients/a2a-sdk.md').read_text(encoding='utf-8')
PROGRAMS = re.findall(r'^```(python|js)\n(.*?)^```\n```text\n(.*?)^```\n', PAGE, re.M | re.S)


def output(language, code):
    """The page's address is the server's; the package has another name beside the tests."""
    code = code.replace('http://127.0.0.1:8484', server('demo').url).replace("'@a2a-js/sdk", "'a2a-js-1")
    words = [sys.executable, '-c', code] if language == 'python' else ['node', '--input-type=module', '-e', code]
    p = subprocess.run(words, cwd=HERE.parents[1] / 'node', capture_output=True, text=True, timeout=60)
    assert p.returncode == 0, p.stderr
    return p.stdout


for n, (language, code, printed) in enumerate(PROGRAMS, 1):
    @test(f'docs/clients/a2a-sdk.md, program {n}, {language}')
    def _(language=language, code=code, printed=printed):
        got = output(language, code)
        assert got == printed, f'it prints {got!r}, the page says {printed!r}'


@test('docs/clients/a2a-sdk.md has programs in both languages')
def _():
    languages = [language for language, _, _ in PROGRAMS]
    assert len(languages) == PAGE.count('```text') and set(languages) == {'python', 'js'}, languages


@test('its servers ended well')
def _():
    complaints = end_all()
    assert not complaints, '\n'.join(complaints)


run()
