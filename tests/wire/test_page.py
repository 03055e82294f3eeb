"""The files of the page as they are served: addresses, caching, compression, size, the policy that browsers enforce."""
import gzip
import re

from lib.http import ask
from lib.server import needs_ours, server
from lib.tap import check, each, same, test

HTML = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
GZIP = ("Accept-Encoding", "gzip, deflate, br")
VIEWS = ["/", "/agents", "/agents/", "/agents/demo/", "/inspect", "/inspect/", "/inspect/some-task", "/compare", "/compare/", "/operate", "/operate/"]
MOST = 300 << 10  # compressed bytes of the whole page


def get(path, *headers, method="GET"):
    needs_ours("the page")
    return ask(server("demo").address, method, path, None, list(headers))


def names_in(text):
    return set(re.findall(r'["(./]([\w-]+-[A-Z0-9]{8}\.(?:js|css|svg))', text))


def files_of_page():
    """name -> content of index.html and of every file that it and they name"""
    found = {"index.html": get("/", HTML).body.decode()}
    left = names_in(found["index.html"])
    while left:
        name = left.pop()
        r = get("/web/" + name)
        same(r.status, 200, name)
        found[name] = r.body.decode()
        left |= names_in(found[name]) - set(found)
    return found


def policy_of(r):
    return {d.split()[0]: d.split()[1:] for d in r.get("content-security-policy").split(";")}


@each("a browser gets the page at {}", VIEWS)
def _(path):
    r = get(path, HTML)
    same((r.status, r.type, r.get("cache-control")), (200, "text/html", "no-cache"), "answer")
    check("Accept" in r.get("vary").split(", "), r)
    same(get(path, HTML, method="HEAD").status, 200, "HEAD")


@each("other clients do not get the page at {}", VIEWS)
def _(path):
    r = get(path, ("Accept", "application/json"))
    check(r.type != "text/html", r)
    same(r.status, 404 if path[1:4] in ("ins", "com", "ope") else 200, "status")


@test("the address of an unknown agent: a browser gets the page with status 404, others an answer that lists the agents")
def _():
    r = get("/agents/nobody/", HTML)
    same((r.status, r.type), (404, "text/html"), "answer")
    r = get("/agents/nobody/")
    same((r.status, r.type), (404, "text/plain"), "answer")
    check(b"demo" in r.body, r)


@test("the page is asked for again, and 304 while it is the same; its files are cached for ever, under names with the hash of their content")
def _():
    page = get("/", HTML)
    tag = page.get("etag")
    same(get("/", HTML, ("If-None-Match", tag)).status, 304, "status with the same tag")
    same(get("/", HTML, ("If-None-Match", '"other"')).status, 200, "status with another tag")
    check(get("/", HTML, GZIP).get("etag") != tag, "the compressed form has the same tag")
    names = set(files_of_page()) - {"index.html"}
    check(len(names) > 5, names)
    for name in names:
        r = get("/web/" + name)
        check("immutable" in r.get("cache-control") and "max-age=31536000" in r.get("cache-control"), r)
        same(get("/web/" + name, ("If-None-Match", r.get("etag"))).status, 304, name)
    same(get("/web/page.js").status, 404, "a name without a hash")


@test("files are compressed for whom accepts gzip, and the content is the same")
def _():
    for name in files_of_page():
        path = "/" if name == "index.html" else "/web/" + name
        plain, packed = get(path, HTML), get(path, HTML, GZIP)
        same((plain.get("content-encoding"), packed.get("content-encoding")), (None, "gzip"), name)
        same(gzip.decompress(packed.body), plain.body, name)
        for r in (plain, packed):
            check("Accept-Encoding" in r.get("vary").split(", "), r)


@each("Accept-Encoding: {}", [(v, v, g) for v, g in {"gzip": True, "GZIP;q=0.5": True, "br, gzip ; q=1": True, "gzip;q=0": False, "gzip; q=0.000": False, "br, deflate": False, "xgzip": False, "*;q=0": False, "": False}.items()])
def _(value, is_gzip):
    same(get("/", HTML, ("Accept-Encoding", value)).get("content-encoding"), "gzip" if is_gzip else None, value)


@test("the whole page is smaller than 300 KiB compressed")
def _():
    sizes = {name: len(get("/" if name == "index.html" else "/web/" + name, HTML, GZIP).body) for name in files_of_page()}
    print(f"# {sum(sizes.values())} bytes: {sizes}")
    check(0 < sum(sizes.values()) < MOST, sizes)


@test("the policy: nothing inline, no eval, nothing of other origins, no frame around the page")
def _():
    for path in ["/", "/inspect/x", "/agents/nobody/"] + ["/web/" + n for n in files_of_page() if n != "index.html"]:
        r = get(path, HTML)
        p = policy_of(r)
        same((p["default-src"], p["script-src"], p["style-src"], p["connect-src"]), (["'none'"], ["'self'"], ["'self'"], ["'self'"]), path)
        same((p["base-uri"], p["form-action"], p["frame-ancestors"]), (["'none'"],) * 3, path)
        same((p["require-trusted-types-for"], p["trusted-types"]), (["'script'"], ["'none'"]), path)
        check(all(s in ("'none'", "'self'", "'script'", "blob:") for sources in p.values() for s in sources), p)
        same((r.get("x-content-type-options"), r.get("referrer-policy"), r.get("cross-origin-opener-policy")), ("nosniff", "no-referrer", "same-origin"), path)
    index = files_of_page()["index.html"]
    check(not re.search(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=|https?://", index), index)


@test("the notices of the libraries of the page are at /licenses")
def _():
    r = get("/licenses", HTML)
    same((r.status, r.type, r.get("x-content-type-options")), (200, "text/plain", "nosniff"), "answer")
    for name in (b"Dragoman", b"Vitaly Puzrin", b"Ivan Sagalaev", b"MIT License", b"Redistribution and use"):
        check(name in r.body, name)


@each("no path leads out of the files of the page: {}", ["/web/", "/web/index.html/", "/web/../web.c", "/web/%2e%2e/x", "/web/licenses.txt%00", "/web/nobody.js"])
def _(path):
    check(get(path, HTML).status in (400, 404), path)
