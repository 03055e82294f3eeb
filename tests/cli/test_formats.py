"""dragoman formats: for people, for programs, for docs/internals/losses.md."""
import json
import os
import re

from support import ROOT, check, check_same, read, run, succeeded, test


def everything(*args):
    return json.loads(succeeded(run("formats", "--json", *args)).out)


@test("formats --json lists every format and every pair")
def _():
    all_ = everything()
    names = [f["name"] for f in all_["formats"]]
    check_same(names[:3], ["a2a-1.0", "a2a-0.3", "a2a-0.3-rest"])
    check({"openai-chat", "openai-responses", "responses-simple", "ag-ui", "ag-ui-simple", "ai-sdk", "langchain"} <= set(names) and len(set(names)) == len(names), names)
    check_same([(c["from"], c["to"]) for c in all_["conversions"]], [(a, b) for a in names for b in names])
    for f in all_["formats"]:
        check(f["about"] and isinstance(f["envelopes"], bool), f)
    for c in all_["conversions"]:
        for loss in c["losses"]:
            # a pointer, or an event by its name
            check(loss["object"] and loss["what"] and re.fullmatch(r"|/.*|[\w.*-]+(/.*)?", loss["member"]), loss)
    check_same(all_["version"], succeeded(run("version")).out.decode().split()[1])


@test("formats --json FROM TO is that pair alone")
def _():
    all_ = everything()["conversions"]
    check_same(everything("a2a-1.0", "openai-chat")["conversions"],
               [c for c in all_ if (c["from"], c["to"]) == ("a2a-1.0", "openai-chat")])
    check_same(everything("a2a-0.3")["conversions"], [c for c in all_ if c["from"] == "a2a-0.3"])


@test("formats shows each format and how much each pair loses")
def _():
    out = succeeded(run("formats")).out.decode()
    all_ = everything()
    names = [f["name"] for f in all_["formats"]]
    for n, f in enumerate(all_["formats"], 1):
        check(re.search(rf"^ ?{n}  {re.escape(f['name'])} .*{re.escape(f['about'])}$", out, re.M), f)
    for n, name in enumerate(names, 1):
        counts = [str(len(c["losses"])) for c in all_["conversions"] if c["from"] == name]
        check(re.search(rf"^ ?{n}  {re.escape(name)} +{' +'.join(counts)}$", out, re.M), f"{name}: {counts}\n{out}")


@test("formats FROM TO shows every loss, formats FROM those towards all")
def _():
    conversions = everything()["conversions"]
    of_format = {name: succeeded(run("formats", name)).out.decode() for name in sorted({c["from"] for c in conversions})}
    for c in conversions:
        out = succeeded(run("formats", c["from"], c["to"])).out.decode()
        check(out.startswith(f"{c['from']} to {c['to']}"), out[:80])
        for loss in c["losses"]:
            check(loss["what"].replace("`", "'") in out and loss["member"] in out and f"  {loss['object']}\n" in out, loss)
        headings = re.findall(r"^  (\S.*)$", out, re.M)
        check(len(set(headings)) == len(headings), f"an object has two headings: {headings}")
        check(out in of_format[c["from"]], "formats FROM lacks it")


@test("formats FROM TO says when nothing is lost")
def _():
    check_same(succeeded(run("formats", "a2a-1.0", "a2a-1.0")).out, b"a2a-1.0 to a2a-1.0: nothing is lost.\n")


@test("docs/internals/losses.md is what formats --markdown prints")
def _():
    path = os.path.join(ROOT, "docs/internals/losses.md")
    check(os.path.exists(path) and read(path) == succeeded(run("formats", "--markdown")).out,
          "out of date: build/dragoman formats --markdown > docs/internals/losses.md")


@test("the links of formats --markdown lead to its sections, its tables hold every loss")
def _():
    page = succeeded(run("formats", "--markdown")).out.decode()
    titles = re.findall(r"^## (.*)$", page, re.M)
    anchors = {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}
    check_same(set(re.findall(r"\(#(.*?)\)", page)), anchors)

    def rows(title):
        return page.split(f"\n## {title}\n")[1].split("\n## ")[0].count("\n| ") - 1 if title in titles else 0
    for c in everything()["conversions"]:
        if c["from"] == c["to"]:
            check_same(c["losses"], [])
            continue
        own = f"{c['from']} to {c['to']}"
        there = rows(own) if own in titles else rows(f"{c['from']}, read") + rows(f"{c['to']}, written")
        check_same(there, len(c["losses"]), f"rows of {own}")
