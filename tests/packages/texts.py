"""What the program prints for packages (completions, man pages), the schema of its configuration, the units, and the
Debian package as a file. Nothing is started here.
"""
import json
import os
import re
import tomllib

from run import Wrong

SCHEMA = ("deploy", "config.schema.json")
SERVICE = ("deploy", "systemd", "lockward.service")
# The most that `systemd-analyze security` may find, in tenths: 0 to 20 is OK or better.
EXPOSURE = 20
# Files that the schema and the program must both take.
GOOD_FILES = [("config.toml",), ("deploy", "debian", "lockward.toml")]
# And what both must refuse.
BAD_FILES = [
    "[listen]\nadress = \"127.0.0.1:1\"\n", "[listen]\naddress = \"nowhere\"\n", "[listen]\nworkers = \"2\"\n",
    "[listen]\naddress = \"a:1\"\nunix = \"/s\"\n", "[listen]\ntls = {}\n", "[upstream]\nurl = \"http://a\"\n",
    "[upstream]\nurl = \"redis+sentinel://a/m\"\n", "[upstream]\nurl = \"redis-sentinel://a/m?x\"\n",
    "[upstream]\nconnect_timeout = \"2\"\n", "[records]\nprefix = \"a{b\"\n", "[admin]\nhosts = [\"a b\"]\n",
    "[listen]\nproxy_protocol = true\n", "[listen]\nunix_mode = \"0770\"\n",
    "[listen]\nunix = \"/s\"\nunix_mode = \"888\"\n", "[[listeners]]\naddress = \"a:1\"\n",
    "[[listeners]]\nname = \"a\"\n", "[[listeners]]\nname = \"listen\"\naddress = \"a:1\"\n",
    "[[listeners]]\nname = \"a\"\naddress = \"a:1\"\nworkers = 2\n",
    "[[listeners]]\nname = \"a\"\nunix = \"/s\"\nlocks = []\n",
    "[log]\nlevel = \"loud\"\n", "locks = []\n", "[[locks]]\nmode = \"off\"\n", "[[locks]]\npattern = []\n",
    "[[locks]]\npattern = \"*\"\nowner = [\"any\", \"user\"]\n", "[[locks]]\npattern = \"*\"\nmax_ttl = 5\n",
]


def commands(given):
    """The subcommands, by the program's help."""
    listed = given.lockward("--help").split("Commands:\n")[1].split("\n\n")[0]
    return [name for name in re.findall(r"^  ([a-z]+) ", listed, re.M) if name != "help"]


def schema_is_a_schema_and_takes_what_the_program_takes(given):
    """jsonschema, draft 2020-12: the schema itself, files that are good, and files that are not."""
    import jsonschema
    schema = json.loads(given.read(*SCHEMA))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for file in GOOD_FILES:
        faults = [error.message for error in validator.iter_errors(tomllib.loads(given.read(*file)))]
        if faults:
            raise Wrong("%s: %s" % ("/".join(file), "; ".join(faults)))
        given.lockward("check", "--config", given.path(*file))
    # Those in the documents too, each a file of its own or a part of one.
    documents = given.read("README.md") + given.read("docs", "operations.md")
    blocks = re.findall(r"```toml\n(.*?)```", documents, re.S)
    for block in blocks:
        faults = [error.message for error in validator.iter_errors(tomllib.loads(block))]
        if faults:
            raise Wrong("a document: %s\n%s" % ("; ".join(faults), block))
    for number, text in enumerate(BAD_FILES):
        if validator.is_valid(tomllib.loads(text)):
            raise Wrong("the schema takes %r" % text)
        given.lockward("check", "--config", given.scratch("bad-%d.toml" % number, text), code=2)
    return "%d good, %d bad" % (len(GOOD_FILES) + len(blocks), len(BAD_FILES))


def man_pages_are_clean(given):
    """man has no warning for any page, and there is one for each command."""
    man, names = given.tool("man"), commands(given)
    environment = dict(os.environ, LC_ALL="C.UTF-8", MANROFFSEQ="", MANWIDTH="80")
    for name in [None, *names]:
        page = given.scratch("man/%s.1" % (name or "lockward"), given.lockward("man", *([name] if name else [])))
        said = given.run("sh", "-c", '"$1" --warnings -E UTF-8 -l -Tutf8 -Z "$2" 2>&1 >/dev/null', "sh", man, page,
                         env=environment)
        if said.strip():
            raise Wrong("%s: %s" % (name or "lockward", said.strip()))
    text = given.run(man, "-l", os.path.join(given.folder, "man", "lockward.1"), env=environment)
    for heading in ("NAME", "SYNOPSIS", "OPTIONS", "COMMANDS", "FILES", "ENVIRONMENT", "SIGNALS", "EXIT STATUS"):
        if not re.search("^%s$" % heading, text, re.M):
            raise Wrong("lockward(1) has no section %s" % heading)
    absent = [name for name in names if "lockward-%s(1)" % name not in text]
    if absent:
        raise Wrong("lockward(1) does not name %s" % ", ".join(absent))
    given.lockward("man", "nothing", code=2)
    return "%d pages" % (len(names) + 1)


def completions_are_read_by_their_shells(given):
    """bash, zsh and fish read theirs; bash and fish complete by them."""
    scripts = {shell: given.scratch("lockward." + shell, given.lockward("completions", shell))
               for shell in ("bash", "zsh", "fish")}
    given.run("bash", "-n", scripts["bash"])
    for shell in ("zsh", "fish"):
        given.run(given.tool(shell), "-n", scripts[shell])
    names = commands(given)
    by_bash = given.run("bash", "-c", "source %s; COMP_WORDS=(lockward ''); COMP_CWORD=1; _lockward lockward '' lockward; "
                        "echo ${COMPREPLY[@]}" % scripts["bash"]).split()
    by_fish = given.run(given.tool("fish"), "-c", "source %s; complete -C 'lockward '" % scripts["fish"],
                        env=dict(os.environ, HOME=given.folder)).splitlines()
    absent = [name for name in names if name not in by_bash or not any(line.startswith(name) for line in by_fish)]
    if absent:
        raise Wrong("not completed: %s" % ", ".join(absent))
    return "%d commands" % len(names)


def units_are_clean_and_closed(given):
    """systemd-analyze verify has nothing to say, and security finds little exposed."""
    analyze = given.tool("systemd-analyze")
    folder = os.path.join(given.folder, "units")
    service = given.read(*SERVICE)
    start = "ExecStart=/usr/bin/lockward "
    if start not in service:
        raise Wrong("the service does not start /usr/bin/lockward")
    # The program is not installed here.
    path = given.scratch("units/lockward.service", service.replace(start, "ExecStart=%s " % given.program))
    socket = given.scratch("units/lockward.socket", given.read("deploy", "systemd", "lockward.socket"))
    said = given.run(analyze, "verify", "--man=no", path, socket, env=dict(os.environ, SYSTEMD_UNIT_PATH=folder + ":"))
    # What is said of the machine's own units is not ours.
    ours = [line for line in said.splitlines() if "lockward" in line]
    if ours:
        raise Wrong("; ".join(ours))
    text = given.run(analyze, "security", "--offline=true", "--no-pager", "--threshold=%d" % EXPOSURE, path)
    return re.search(r"Overall exposure level.*?: (.*)", text).group(1)


def package_is_as_debian_wants_it(given):
    """lintian finds no error and no warning but those that deploy/debian/overrides justifies."""
    said = given.run(given.tool("lintian"), "--allow-root", "--tag-display-limit", "0", "--show-overrides",
                     given.package())
    overridden = [line for line in said.splitlines() if line.startswith("O:")]
    other = [line for line in said.splitlines() if re.match("[EW]:", line)]
    if other:
        raise Wrong("; ".join(other))
    files = given.run("dpkg-deb", "--contents", given.package()).count("\n")
    return "%d files, %d overrides" % (files, len(overridden))


CHECKS = [package_is_as_debian_wants_it, schema_is_a_schema_and_takes_what_the_program_takes, man_pages_are_clean,
          completions_are_read_by_their_shells, units_are_clean_and_closed]
