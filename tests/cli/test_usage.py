"""Command lines: what is understood, what is refused and how."""
import re

from support import TO_03, check, check_same, compact, failed, message, run, succeeded, test

COMMANDS = ["serve", "send", "task", "card", "connect", "init", "schema", "db", "mcp", "bench", "lint", "convert", "compact", "formats", "version", "help"]


@test("version, --version and the library say the same")
def _():
    out = succeeded(run("version")).out
    check(re.fullmatch(rb"dragoman \d+\.\d+\.\d+\n", out), out)
    check_same(succeeded(run("--version")).out, out)


@test("help, --help and -h show all commands")
def _():
    out = succeeded(run("help")).out
    for command in COMMANDS:
        check(f"\n  {command} " in out.decode(), f"{command} is missing")
    check(b"__" not in out, "help shows what is for the build alone")
    check_same(succeeded(run("--help")).out, out)
    check_same(succeeded(run("-h")).out, out)


@test("help COMMAND, COMMAND --help and COMMAND -h are the same, for each command")
def _():
    for command in COMMANDS:
        out = succeeded(run("help", command)).out
        check(out.startswith(f"Usage: dragoman {command}".encode()), out)
        check(b"Exit status:" in out and b"Examples:" in out, out)
        check_same(succeeded(run(command, "--help")).out, out)
        check_same(succeeded(run(command, "-h")).out, out)


@test("help is given also behind things that are wrong or missing")
def _():
    check_same(run("convert", "a", "--help", "--nonsense").out, run("help", "convert").out)


@test("no command at all shows help on stderr and ends with 2")
def _():
    ended = run()
    check_same(ended.status, 2, "status")
    check_same(ended.out, b"", "stdout")
    check(ended.err.startswith("Usage: dragoman"), ended)


WRONG = [  # the command line, the error
    (["convrt"], "unknown command 'convrt'", "did you mean 'convert'?"),
    (["--nonsense"], "unknown option '--nonsense'", "dragoman help"),
    (["--to", "a2a-1.0"], "unknown option '--to'", "dragoman convert --to"),
    (["convert"], "convert needs --to FORMAT", "a2a-1.0"),
    (["convert", "--to"], "'--to' needs a value", "a2a-1.0"),
    (["convert", "--to", "a2a"], "unknown format 'a2a'", "did you mean 'a2a-1.0'?"),
    (["convert", "--to=opnai-chat"], "unknown format 'opnai-chat'", "did you mean 'openai-chat'?"),
    (["convert", "--to", "auto"], "unknown format 'auto'", "allowed values: a2a-1.0"),
    (["convert", "--from", "a2a-0.2", "--to", "a2a-1.0"], "unknown format 'a2a-0.2'", "did you mean 'a2a-0.3'?"),
    (["convert", "--form", "auto"], "unknown option '--form'", "did you mean '--from'?"),
    (["convert", "--frame", "ssse"], "unknown framing 'ssse'", "did you mean 'sse'?"),
    (["convert", "--object", "massage"], "unknown kind of object 'massage'", "did you mean 'message'?"),
    (["convert", "-z"], "unknown option '-z'", "dragoman help convert"),
    (["convert", "--help=1"], "'--help' takes no value", "dragoman help convert"),
    (["formats", "a2a-1.0", "openai-chat", "more"], "'more' is one argument too many", "dragoman help formats"),
    (["formats", "--json", "--markdown"], "not both", "dragoman help formats"),
    (["formats", "--markdown", "a2a-1.0"], "needs no arguments", "dragoman help formats"),
    (["help", "me"], "unknown command 'me'", "allowed values: serve"),
    (["version", "1"], "'1' is one argument too many", "dragoman help version"),
    (["__man", "nonsense"], "unknown man page", "hint: "),
    (["__completion", "tcsh"], "unknown shell 'tcsh'", "did you mean"),
]


@test("what is typed wrong ends with 2, says what and what instead, prints nothing")
def _():
    for args, *said in WRONG:
        ended = failed(run(*args), 2, *said)
        check_same(ended.out, b"", f"stdout of {args}")


@test("options are taken as --name value, --name=value, -n value and -nvalue, anywhere")
def _():
    want = succeeded(run(*TO_03, stdin=compact(message()))).out
    for args in (["--from=a2a-1.0", "--to=a2a-0.3"], ["-f", "a2a-1.0", "-t", "a2a-0.3"], ["-fa2a-1.0", "-ta2a-0.3"],
                 ["-", "-f", "a2a-1.0", "--to=a2a-0.3"], ["-f", "auto", "-f", "a2a-1.0", "-ta2a-0.3"],
                 ["-ta2a-0.3", "--", "-"]):
        check_same(succeeded(run("convert", *args, stdin=compact(message()))).out, want, str(args))


@test("an empty command word, a huge one and one with control characters are refused safely")
def _():
    failed(run(""), 2, "unknown command ''")
    failed(run("x" * 100000), 2, "unknown command 'xxx")
    failed(run("--" + "x" * 100000), 2, "unknown option '--xxx")
    ended = failed(run("con\x1b[31mvert\n"), 2, "\\x1b[31m", "\\x0a")
    check("\x1b" not in ended.err, ended)
