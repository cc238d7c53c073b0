"""The Dockerfile and the Kubernetes manifests: each shown to its validator, and held against what they are made for. No
image is built and no cluster is asked.
"""
import json
import os
import re
import shutil
import tomllib

from run import Wrong

KUBERNETES = ("deploy", "kubernetes")
# How long a drain takes at most (src/proxy/mod.rs), in seconds.
DRAIN = 5
# What Kubernetes itself does not know, so that the validator does not either: looked at by hand here.
FOREIGN = ("monitoring.coreos.com/v1", "kustomize.config.k8s.io/v1beta1")


def manifests(given):
    """Path and content of each manifest."""
    import yaml
    for folder, _, names in sorted(os.walk(given.path(*KUBERNETES))):
        for name in sorted(names):
            if name.endswith(".yaml"):
                path = os.path.join(folder, name)
                with open(path) as file:
                    for manifest in yaml.safe_load_all(file):
                        yield path, manifest


def dockerfile_is_clean(given):
    """hadolint, with every rule; and what the build reads is in its context."""
    path = given.path("deploy", "docker", "Dockerfile")
    given.run(os.path.join(given.libraries, "bin", "hadolint"), "--failure-threshold", "style", path)
    text = given.read("deploy", "docker", "Dockerfile")
    context(given)
    # All stages but the last may have a shell; no base is without a tag.
    bases = re.findall(r"^FROM (\S+)", text, re.M)
    if not all(re.search(r":[\w.-]+$", base) and not base.endswith(":latest") for base in bases):
        raise Wrong("a base without a tag: %r" % bases)
    if "USER 65532" not in text.split("FROM ")[-1]:
        raise Wrong("it runs as root")
    health = json.loads(re.search(r"CMD (\[.*\"health\".*\])", text).group(1))
    given.lockward(health[1], "--help")
    return "%d stages" % len(bases)


def context(given):
    """Lays out what docker would be sent, and looks in there for all that cargo and the compiler will read."""
    ignored = [line for line in given.read(".dockerignore").splitlines() if line and not line.startswith("#")]
    if not all(re.fullmatch(r"(\*\*/)?[\w./-]+", line) for line in ignored):
        raise Wrong(".dockerignore has patterns that this test does not know: %r" % ignored)
    tops = {line for line in ignored if "/" not in line}
    sent = os.path.join(given.folder, "context")
    shutil.copytree(given.path(), sent, symlinks=True,
                    ignore=lambda folder, names: tops & set(names) if os.path.samefile(folder, given.path()) else ())
    given.run("cargo", "metadata", "--locked", "--offline", "--no-deps", "--format-version", "1", cwd=sent)
    for folder, _, names in os.walk(os.path.join(sent, "src")):
        for name in names:
            if name.endswith(".rs"):
                with open(os.path.join(folder, name)) as file:
                    read = re.findall(r'include_(?:str|bytes)!\("([^"]+)"\)', file.read())
                absent = [path for path in read if not os.path.exists(os.path.join(folder, path))]
                if absent:
                    raise Wrong("the image's context lacks %s, which %s reads" % (", ".join(absent), name))


def manifests_are_what_kubernetes_takes(given):
    """kubernetes-validate, strict: an unknown field is an error."""
    import kubernetes_validate
    version, seen = kubernetes_validate.latest_version(), 0
    for path, manifest in manifests(given):
        if manifest["apiVersion"] in FOREIGN:
            continue
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            raise Wrong("%s: %s: %s" % (os.path.relpath(path, given.path()), ".".join(map(str, error.path)), error.message))
        seen += 1
    return "%d manifests, Kubernetes %s" % (seen, version)


def kustomizations_name_what_is_there(given):
    """Every file that they read exists, every manifest is read, and what pods name is made or documented."""
    named, made = set(), {"lockward"}       # the Secret, by hand
    for path, manifest in manifests(given):
        if manifest["kind"] != "Kustomization":
            continue
        folder = os.path.dirname(path)
        files = list(manifest.get("resources", ()))
        for generator in manifest.get("configMapGenerator", ()):
            files += generator["files"]
            made.add(generator["name"])
        for file in files:
            if not os.path.exists(os.path.join(folder, file)):
                raise Wrong("%s names %s" % (os.path.relpath(path, given.path()), file))
            named.add(os.path.normpath(os.path.join(folder, file)))
    for path, manifest in manifests(given):
        if manifest["kind"] != "Kustomization" and path not in named:
            raise Wrong("no kustomization names %s" % os.path.relpath(path, given.path()))
        text = json.dumps(manifest)
        for name in re.findall(r'"(?:configMap|secretKeyRef)": \{"name": "([^"]+)"', text):
            if name not in made:
                raise Wrong("%s names %s, which nobody makes" % (os.path.relpath(path, given.path()), name))
    return "%d files" % len(named)


def rules_and_dashboard_are_the_ones_of_the_tree(given):
    """The PrometheusRule holds the alerts as they are; the dashboard is taken from its own file."""
    import yaml
    made = given.run(given.path("scripts", "kubernetes-rules"))
    if made != given.read(*KUBERNETES, "monitoring", "rules.yaml"):
        raise Wrong("rules.yaml is not what scripts/kubernetes-rules prints of alerts.yml: make kubernetes-rules")
    groups = yaml.safe_load(given.read("deploy", "prometheus", "alerts.yml"))["groups"]
    rule = yaml.safe_load(made)
    if rule["spec"] != {"groups": groups} or (rule["kind"], rule["apiVersion"]) != ("PrometheusRule", FOREIGN[0]):
        raise Wrong("rules.yaml does not say what alerts.yml does")
    dashboard = yaml.safe_load(given.read("deploy", "grafana", "kustomization.yaml"))["configMapGenerator"][0]["files"]
    for file in dashboard:
        json.loads(given.read("deploy", "grafana", file))
    monitor = next(manifest for _, manifest in manifests(given) if manifest["kind"] == "ServiceMonitor")
    services = [manifest for _, manifest in manifests(given) if manifest["kind"] == "Service"]
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    met = [service for service in services if wanted <= service["metadata"]["labels"].items()]
    ports = {port["name"] for service in met for port in service["spec"]["ports"]}
    if len(met) != 1 or not {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= ports:
        raise Wrong("the ServiceMonitor meets %d services with the ports %s" % (len(met), sorted(ports)))
    return "%d groups of rules" % len(groups)


def deployments_fit_the_program(given):
    """The configurations are good, ports and probes are those of the program, and there is time for a drain."""
    import jsonschema
    schema = jsonschema.Draft202012Validator(json.loads(given.read("deploy", "config.schema.json")))
    secrets = dict(os.environ, LOCKWARD_UPSTREAM__URL="redis://lockward:secret@redis:6379", LOCKWARD_ADMIN__TOKEN="t")
    for folder in (("deploy", "kubernetes", "central"), ("deploy", "kubernetes", "sidecar"), ("deploy", "docker")):
        settings = tomllib.loads(given.read(*folder, "lockward.toml"))
        schema.validate(settings)
        given.lockward("check", "--config", given.path(*folder, "lockward.toml"), env=secrets)
    seen = 0
    for path, manifest in manifests(given):
        if manifest["kind"] != "Deployment":
            continue
        pod = manifest["spec"]["template"]["spec"]
        settings = tomllib.loads(given.read(os.path.dirname(os.path.relpath(path, given.path())), "lockward.toml"))
        containers = [c for c in pod["containers"] + pod.get("initContainers", []) if c["image"] == "lockward"]
        for container in containers:
            fits(container, pod, settings)
            seen += 1
    return "%d containers" % seen


def fits(container, pod, settings):
    """One container of lockward's, with the settings that it is started with."""
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    listens = {name: int(settings[section]["address"].rsplit(":", 1)[1])
               for name, section in (("redis", "listen"), ("admin", "admin")) if "address" in settings[section]}
    if ports != listens:
        raise Wrong("it listens on %r, and the manifest says %r" % (listens, ports))
    for name in ("startupProbe", "readinessProbe", "livenessProbe"):
        probe = container.get(name, {}).get("httpGet")
        if probe and (probe["port"] != "admin" or probe["path"] not in ("/livez", "/readyz")):
            raise Wrong("%s asks for %r" % (name, probe))
    if container["livenessProbe"]["httpGet"]["path"] != "/livez":
        raise Wrong("a restart does not bring a server back")
    waits = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    if pod["terminationGracePeriodSeconds"] < waits + DRAIN + 5:
        raise Wrong("there is no time for a drain")
    mounted = [mount["mountPath"] for mount in container["volumeMounts"]]
    if "/etc/lockward" not in mounted or "/etc/lockward/lockward.toml" not in container["args"]:
        raise Wrong("the configuration is not where it is looked for")
    unix = settings["listen"].get("unix")
    if unix and os.path.dirname(unix) not in mounted:
        raise Wrong("nobody else sees the socket")
    if settings["locks"][0]["owner"] == "process" and not pod.get("shareProcessNamespace"):
        raise Wrong("owner = process without shareProcessNamespace: lockward would see no process")


CHECKS = [dockerfile_is_clean, manifests_are_what_kubernetes_takes, kustomizations_name_what_is_there,
          rules_and_dashboard_are_the_ones_of_the_tree, deployments_fit_the_program]
