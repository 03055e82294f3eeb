"""The files of deploy/ against the schemas of Kubernetes and compose, against the program, and against each other."""
import ctypes
import glob
import importlib.resources
import json
import os
import re
import shutil
import subprocess

import jsonschema
import kubernetes_validate
import yaml

from lib import server
from lib.http import ask
from lib.server import DRAGOMAN, ROOT, Server, folder
from lib.tap import Skip, check, each, same, test

DEPLOY = os.path.join(ROOT, "deploy")
KUBERNETES = sorted(glob.glob(DEPLOY + "/kubernetes/*.yaml"))
# The oldest version that we support, and the newest one of the package. strict: unknown members are errors.
VERSIONS = ("1.29", "1.37")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def objects():
    return [o for path in KUBERNETES for o in yaml.safe_load_all(read(path))]


def of_kind(kind):
    found = [o for o in objects() if o["kind"] == kind]
    check(found, f"there is no {kind}")
    return found


def container():
    return of_kind("Deployment")[0]["spec"]["template"]["spec"]["containers"][0]


def compose():
    return yaml.safe_load(read("deploy/compose.yaml"))


def program(*args):
    return subprocess.run([DRAGOMAN, *args], env=server.ENV, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)


# ---- schemas -------------------------------------------------------------------------------------------------

def compose_schema():
    path = importlib.resources.files("check_jsonschema") / "builtin_schemas/vendor/compose-spec.json"
    return json.loads(path.read_text(encoding="utf-8"))


@each("every object of deploy/kubernetes fits the schema of Kubernetes {}", VERSIONS)
def _(version):
    for o in objects():
        kubernetes_validate.validate(o, version, strict=True)
    same(sorted({o["kind"] for o in objects()}), ["ConfigMap", "Deployment", "PodDisruptionBudget", "Secret", "Service"], "kinds")


@test("the check of Kubernetes' schema can fail: an unknown member, a wrong type")
def _():
    for change in (lambda c: c.update(livenesProbe={}), lambda c: c["readinessProbe"].update(periodSeconds="2")):
        deployment = of_kind("Deployment")[0]
        change(deployment["spec"]["template"]["spec"]["containers"][0])
        try:
            kubernetes_validate.validate(deployment, VERSIONS[-1], strict=True)
        except kubernetes_validate.ValidationError:
            continue
        check(False, "it is valid")


@test("deploy/compose.yaml fits the schema of the compose specification")
def _():
    jsonschema.validate(compose(), compose_schema())


@test("the check of compose's schema can fail: an unknown member, a wrong type")
def _():
    for change in (lambda s: s.update(enviroment={}), lambda s: s["healthcheck"].update(retries=True)):
        c = compose()
        change(c["services"]["dragoman"])
        try:
            jsonschema.validate(c, compose_schema())
        except jsonschema.ValidationError:
            continue
        check(False, "it is valid")


# ---- what they name exists in the program ----------------------------------------------------------------------

def commands():
    """Every command line of the program in deploy/."""
    image = re.findall(r"^(?:ENTRYPOINT|CMD) (\[.*\])$", read("deploy/Containerfile"), re.M)
    entry, command = map(json.loads, image)
    same(entry, ["dragoman"], "ENTRYPOINT")
    return {"Containerfile": command, "compose.yaml": compose()["services"]["dragoman"]["command"], "kubernetes": container()["args"]}


@test("every option of a command line is one of `dragoman serve --help`, and every file is in the image or mounted")
def _():
    known = re.findall(r"(?<![\w'-])-{1,2}[a-z][a-z-]*", program("serve", "--help").stdout)
    mounts = {m["mountPath"]: m["name"] for m in container()["volumeMounts"]}
    for where, words in commands().items():
        same(words[0], "serve", f"command of {where}")
        for word in words[1:]:
            check(not word.startswith("-") or word in known, f"{where}: {word} is no option of serve")
            if word.startswith("/"):
                there = {"Containerfile": f"COPY deploy/{os.path.basename(word)} {word}\n" in read("deploy/Containerfile"),
                         "compose.yaml": f"./{os.path.basename(word)}:{word}:ro" in compose()["services"]["dragoman"]["volumes"],
                         "kubernetes": os.path.dirname(word) in mounts and os.path.basename(word) in of_kind("ConfigMap")[0]["data"]}
                check(there[where], f"{where}: no file becomes {word}")


@test("deploy/dragoman.yaml fits `dragoman schema`, `serve --check` accepts it, and the ConfigMap has the same settings")
def _():
    schema = json.loads(program("schema").stdout)
    settings = yaml.safe_load(read("deploy/dragoman.yaml"))
    jsonschema.Draft202012Validator(schema).validate(settings)
    same(yaml.safe_load(of_kind("ConfigMap")[0]["data"]["dragoman.yaml"]), settings, "the ConfigMap")
    p = subprocess.run([DRAGOMAN, "serve", "--check", "-c", DEPLOY + "/dragoman.yaml"], cwd=folder(), text=True, timeout=60,
                       env={**server.ENV, "DRAGOMAN_TOKEN": "t" * 16}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check(p.returncode == 0, p.stdout)
    bad = {**settings, "drain": 20}
    check(not jsonschema.Draft202012Validator(schema).is_valid(bad), "an unknown setting is valid")


class Option(ctypes.Structure):
    _fields_ = [("keyword", ctypes.c_char_p), ("envvar", ctypes.c_char_p), ("compiled", ctypes.c_char_p), ("val", ctypes.c_char_p),
                ("label", ctypes.c_char_p), ("dispchar", ctypes.c_char_p), ("dispsize", ctypes.c_int)]


def libpq_options():
    """The parameters and the variables of libpq, as the library of the program has them."""
    linked = subprocess.run(["ldd", DRAGOMAN], stdout=subprocess.PIPE, text=True, check=True).stdout
    defaults = ctypes.CDLL(re.search(r"(/\S*libpq\.so\S*)", linked)[1]).PQconndefaults
    defaults.restype = ctypes.POINTER(Option)
    options, keywords, variables = defaults(), set(), {"PGSERVICEFILE"}  # not a parameter
    for i in range(200):
        if not options[i].keyword:
            break
        keywords.add(options[i].keyword.decode())
        variables.add((options[i].envvar or b"").decode())
    return keywords, variables


@test("every variable of the environment is one of libpq or is named in the configuration, every line of the service file is a parameter of libpq")
def _():
    keywords, variables = libpq_options()
    check(len(keywords) > 20 and "PGPASSWORD" in variables, "libpq has no options")
    of_compose = compose()["services"]["dragoman"]["environment"]
    for name in {*of_compose, *(e["name"] for e in container()["env"])}:
        check(name in variables if name.startswith("PG") else name in read("deploy/dragoman.yaml"),
              f"{name} is read by neither libpq nor the configuration")
    for key in re.findall(r"^(\w+)=", of_kind("Secret")[0]["stringData"]["pg_service.conf"], re.M):
        check(key in keywords, f"pg_service.conf: {key} is no parameter of libpq")


@test("every path of a probe is answered by a server of this configuration, without a token")
def _():
    paths = {container()[p]["httpGet"]["path"] for p in ("livenessProbe", "readinessProbe", "startupProbe")}
    paths |= {re.search(r"http://[^/]+(/\S*)", " ".join(compose()["services"]["dragoman"]["healthcheck"]["test"]))[1]}
    paths |= set(re.findall(r"http-check send meth GET uri (\S+)", read("deploy/haproxy.cfg")))
    same(sorted(paths), ["/healthz", "/readyz"], "paths")
    settings = {k: v for k, v in yaml.safe_load(read("deploy/dragoman.yaml")).items() if k not in ("listen", "store")}
    with Server(agent=None, config=settings, env={"DRAGOMAN_TOKEN": "t" * 16}) as s:
        for path in sorted(paths):
            same(ask(s.address, "GET", path).status, 200, path)
        same(ask(s.address, "GET", "/").status in (200, 401), True, "/")
        hidden = re.findall(r"path(?:_beg)? (/\S+)", read("deploy/haproxy.cfg"))
        same(sorted(hidden), ["/debug/", "/metrics"], "paths that the balancer hides")
        same(ask(s.address, "GET", "/metrics").status, 200, "/metrics")
        s.stop_well()


def settings_of(schema):
    """The names of all settings, each with those that contain it: `a2a.blocking_limit_s`, `blocking_limit_s`."""
    names = set()

    def walk(node, path):
        if isinstance(node, list):
            for n in node:
                walk(n, path)
        elif isinstance(node, dict):
            if "$ref" in node:
                key = node["$ref"].rsplit("/", 1)[-1]
                if path.count(".") < 4:
                    walk(schema["$defs"][key], path)
            for key, value in node.items():
                if key == "properties":
                    for name, of in value.items():
                        names.update((name, f"{path}.{name}".lstrip(".")))
                        walk(of, f"{path}.{name}")
                elif key != "$defs":
                    walk(value, path)
    walk(schema, "")
    return names


@test("the parameters of `store` and of each connection string in docs/replicas.md are libpq's or ours")
def _():
    keywords = libpq_options()[0] | {"relaxed_deltas"}
    texts = [yaml.safe_load(read("deploy/dragoman.yaml"))["store"], yaml.safe_load(of_kind("ConfigMap")[0]["data"]["dragoman.yaml"])["store"]]
    texts += re.findall(r"postgres:[^'\"`\n]+", read("docs/replicas.md"))
    found = {name for text in texts for name in re.findall(r"(\w+)=", text)}
    check({"target_session_attrs", "host", "dbname"} <= found, found)
    same(sorted(found - keywords), [], "unknown parameters")


@test("every variable, setting and option that deploy/ and docs/replicas.md name exists")
def _():
    text = read("docs/replicas.md") + "".join(read(os.path.relpath(p, ROOT)) for p in glob.glob(DEPLOY + "/*.*") + KUBERNETES)
    variables = libpq_options()[1]
    named = set(re.findall(r"\bPG[A-Z]{3,}\b", text))
    check({"PGPASSWORD", "PGSERVICEFILE"} <= named, named)
    same(sorted(named - variables), [], "variables that libpq does not have")
    known = settings_of(json.loads(program("schema").stdout))
    settings = set(re.findall(r"\b(?:[a-z]\w*\.)?[a-z]+(?:_[a-z]+)*_s\b", text))
    settings |= set(re.findall(r"`(replica\.\w+)`", text))
    check({"drain_s", "replica.lease_s", "a2a.blocking_limit_s"} <= settings, settings)
    same(sorted(settings - known), [], "unknown settings")
    options = re.findall(r"(?<![\w'-])--[a-z][a-z-]*", program("serve", "--help").stdout)
    lines = re.findall(r"^dragoman serve (.*)$", text, re.M)
    check(lines, "no command lines")
    same([o for line in lines for o in re.findall(r"--[a-z-]+", line) if o not in options], [], "unknown options")


@test("the variables of deploy/.env are those that the commands of compose.yaml and docs/replicas.md write")
def _():
    wanted = sorted(set(re.findall(r"\$\{(\w+):", read("deploy/compose.yaml"))))
    check(wanted, "no variables")
    for path in ("deploy/compose.yaml", "docs/replicas.md"):
        same(sorted(re.findall(r"([A-Z_]+)=%s", read(path))), wanted, f"variables of the command in {path}")


@test("every metric that docs/replicas.md names is one of a server on PostgreSQL")
def _():
    named = set(re.findall(r"`(dragoman_\w+)`", read("docs/replicas.md")))
    check(len(named) > 5, named)
    with Server(store=server.on_postgres("memory:")) as s:
        text = ask(s.address, "GET", "/metrics").body.decode()
        s.stop_well()
    same(sorted(n for n in named if f"# HELP {n} " not in text), [], "metrics that /metrics does not have")


# ---- they fit each other -----------------------------------------------------------------------------------------

def seconds(text):
    return float(re.fullmatch(r"(\d+)s", str(text))[1])


@test("the time to end is longer than the drain, and the port is the same everywhere")
def _():
    settings = yaml.safe_load(read("deploy/dragoman.yaml"))
    drain, port = settings["drain_s"], int(settings["listen"].rsplit(":", 1)[1])
    pod = of_kind("Deployment")[0]["spec"]["template"]["spec"]
    wait = int(container()["lifecycle"]["preStop"]["exec"]["command"][1])
    check(pod["terminationGracePeriodSeconds"] >= drain + wait + 10, "terminationGracePeriodSeconds is too short")
    check(seconds(compose()["services"]["dragoman"]["stop_grace_period"]) >= drain + 10, "stop_grace_period is too short")
    same(container()["ports"][0]["containerPort"], port, "containerPort")
    same(f"EXPOSE {port}\n" in read("deploy/Containerfile"), True, "EXPOSE")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        same(container()[probe]["httpGet"]["port"], container()["ports"][0]["name"], probe)
    same(re.findall(r"http://127\.0\.0\.1:(\d+)/", " ".join(compose()["services"]["dragoman"]["healthcheck"]["test"])), [str(port)], "healthcheck")
    inside, outside = re.findall(r"^    bind :(\d+)$", read("deploy/haproxy.cfg"), re.M), compose()["services"]["balancer"]["ports"]
    same([p.rsplit(":", 1)[1] for p in outside], inside, "the port of the balancer")
    same(re.findall(r"^\s*server-template \w+ (\d+) dragoman:(\d+)", read("deploy/haproxy.cfg"), re.M),
         [(str(compose()["services"]["dragoman"]["deploy"]["replicas"]), str(port))], "server-template")
    same(of_kind("Service")[0]["spec"]["ports"][0]["targetPort"], container()["ports"][0]["name"], "targetPort")


@test("selectors find the pods, the budget leaves replicas, names of secrets and volumes exist")
def _():
    deployment, template = of_kind("Deployment")[0]["spec"], of_kind("Deployment")[0]["spec"]["template"]
    labels = template["metadata"]["labels"]
    for selector in (deployment["selector"]["matchLabels"], of_kind("Service")[0]["spec"]["selector"],
                     of_kind("PodDisruptionBudget")[0]["spec"]["selector"]["matchLabels"]):
        check(selector.items() <= labels.items(), f"{selector} finds no pod")
    check(0 < of_kind("PodDisruptionBudget")[0]["spec"]["minAvailable"] < deployment["replicas"], "minAvailable")
    volumes = {v["name"]: v for v in template["spec"]["volumes"]}
    same({m["name"] for m in container()["volumeMounts"]}, set(volumes), "volumes")
    secrets = {o["metadata"]["name"]: o["stringData"] for o in of_kind("Secret")}
    mount = next(m["mountPath"] for m in container()["volumeMounts"] if m["name"] == "database")
    files = {f"{mount}/{name}" for name in secrets[volumes["database"]["secret"]["secretName"]]}
    named = [e["value"] for e in container()["env"] if e.get("value", "").startswith("/")]
    named += re.findall(r"sslrootcert=(\S+)", secrets["dragoman-database"]["pg_service.conf"])
    check(named and set(named) <= files, f"{named} are not all in {files}")
    service = next(e["value"] for e in container()["env"] if e["name"] == "PGSERVICE")
    check(f"[{service}]\n" in secrets["dragoman-database"]["pg_service.conf"], f"no service {service}")
    for e in container()["env"]:
        key = e.get("valueFrom", {}).get("secretKeyRef")
        check(not key or key["key"] in secrets[key["name"]], f"{e['name']}: no such key")
    for m in ("ConfigMap",):
        same(volumes["config"]["configMap"]["name"], of_kind(m)[0]["metadata"]["name"], "ConfigMap")


@test("no secret has a value, and no image names a registry")
def _():
    for o in of_kind("Secret"):
        for key, value in o["stringData"].items():
            if key == "pg_service.conf":
                same(re.findall(r"password=(.*)", value), ["CHANGE-ME"], "password")
            else:
                check(value.startswith("CHANGE-ME"), f"{key} has a value")
    environment = {**compose()["services"]["postgres"]["environment"], **compose()["services"]["dragoman"]["environment"]}
    for name, value in environment.items():
        if re.search("PASSWORD|TOKEN", name):
            check(re.fullmatch(r"\$\{\w+:\?[^}]+\}", value), f"{name} has a value")
    images = [s["image"] for s in compose()["services"].values()] + [container()["image"]] + re.findall(r"^FROM (\S+)", read("deploy/Containerfile"), re.M)
    check(len(images) >= 6 and all("/" not in i for i in images), images)


# ---- the image ----------------------------------------------------------------------------------------------------

def stages():
    """The packages that each stage of the Containerfile installs."""
    text = read("deploy/Containerfile").replace("\\\n", " ")
    return [m[1].split("&&")[0].split() for m in re.finditer(r"^RUN apt-get update && apt-get install -y --no-install-recommends (.*)$", text, re.M)]


@test("the Containerfile installs the packages of `scripts/setup run`, and make")
def _():
    body = re.search(r"^need_run\(\) \{\n(.*?)^\}", read("scripts/setup"), re.S | re.M)[1]
    wanted = re.findall(r"^    need (\S+)", body, re.M)
    check(len(wanted) > 10, wanted)
    same(sorted(stages()[0]), sorted([*wanted, "make"]), "packages of the first stage")


@test("the Containerfile's second stage installs the shared libraries of the program, and nothing else but curl and certificates")
def _():
    if not shutil.which("dpkg"):
        raise Skip("no dpkg")
    # Debian 12 and 13 differ in names: libssl3, libssl3t64
    def plain(name):
        return re.sub(r"t64$", "", name)
    linked = set()
    for m in re.finditer(r"NEEDED\s+(\S+)", subprocess.run(["objdump", "-p", DRAGOMAN], stdout=subprocess.PIPE, text=True, check=True).stdout):
        if re.match(r"lib(asan|ubsan|c|m|dl|pthread)\.so|ld-", m[1]):
            continue
        path = next(p for p in re.findall(r"=> (\S+)", subprocess.run(["ldd", DRAGOMAN], stdout=subprocess.PIPE, text=True).stdout) if os.path.basename(p) == m[1])
        found = subprocess.run(["dpkg", "-S", *{path, os.path.realpath(path), re.sub("^/lib", "/usr/lib", os.path.realpath(path))}],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
        check(found, f"{path} is of no package")
        linked.add(plain(found.split(":")[0]))
    same(sorted(plain(p) for p in stages()[1] if p not in ("curl", "ca-certificates")), sorted(linked), "libraries")


@test("the balancer's configuration is valid for HAProxy, without warnings")
def _():
    if not shutil.which("haproxy"):
        raise Skip("no haproxy (Debian's package haproxy)")
    p = subprocess.run(["haproxy", "-c", "-f", DEPLOY + "/haproxy.cfg"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60)
    check(p.returncode == 0 and "WARNING" not in p.stdout and "ALERT" not in p.stdout, p.stdout)
