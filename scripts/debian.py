"""Programs out of Debian's packages, for any user: downloaded and unpacked, never installed. Knows no cache.
"""
import os
import re
import shutil
import tempfile

from cache import Unavailable, run, say

# Sets the library path for the program alone, and replaces itself by it, so that a signal reaches the program.
WRAPPER = """#!/bin/sh
here=$(dirname -- "$(readlink -f -- "$0")")
LD_LIBRARY_PATH="%s${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LD_LIBRARY_PATH
%sexec "$here/root/%s" "$@"
"""


class Debian:
    """Downloads packages as any user: with the machine's package lists, else with lists of its own. `otherwise` says
    what helps where that cannot be."""

    def __init__(self, folder, otherwise):
        self.folder, self.options = folder, None
        for tool in ("apt-get", "dpkg-deb", "ldd"):
            if not shutil.which(tool):
                raise Unavailable("it is taken from Debian's packages, and this machine has no %s: %s" % (
                    tool, otherwise))

    def private_lists(self):
        state, cache = os.path.join(self.folder, "state"), os.path.join(self.folder, "apt-cache")
        os.makedirs(os.path.join(state, "lists", "partial"))
        os.makedirs(os.path.join(cache, "archives", "partial"))
        settings = {"Dir::State": state, "Dir::State::lists": os.path.join(state, "lists"), "Dir::Cache": cache,
                    "Dir::State::status": "/var/lib/dpkg/status", "APT::Sandbox::User": ""}
        self.options = [part for name, value in settings.items() for part in ("-o", "%s=%s" % (name, value))]
        say("no usable package lists on this machine: reading them into the cache")
        run("apt-get", *self.options, "-qq", "update")

    def download(self, names):
        into = tempfile.mkdtemp(dir=self.folder)
        if self.options is None:
            self.options = ["-o", "APT::Sandbox::User="]
            try:
                return self.get(names, into)
            except Unavailable:     # no lists, or lists that name versions which are gone
                self.private_lists()
        return self.get(names, into)

    def get(self, names, into):
        run("apt-get", *self.options, "-qq", "download", *names, cwd=into)
        return [os.path.join(into, name) for name in sorted(os.listdir(into)) if name.endswith(".deb")]


def missing_libraries(program, folders):
    environment = dict(os.environ, LD_LIBRARY_PATH=":".join(folders))
    return re.findall(r"^\s*(\S+) => not found", run("ldd", program, env=environment), re.M)


def library_folders(root):
    return sorted(folder for folder, _, files in os.walk(root) if any(re.search(r"\.so(\.|$)", f) for f in files))


def unpack(debian, packages, program, target):
    """Unpacks packages into `target/root`, with the libraries that `program` (a path in there) needs and the machine
    lacks."""
    root, wanted, seen = os.path.join(target, "root"), list(packages), set()
    while wanted:
        seen.update(wanted)
        needs = []
        for package in debian.download(wanted):
            run("dpkg-deb", "-x", package, root)
            needs += re.findall(r"(?:^|,\s*)(lib[a-z0-9.+-]+)", run("dpkg-deb", "-f", package, "Depends"))
        absent = missing_libraries(os.path.join(root, program), library_folders(root))
        if not absent:
            return
        # libc6 must be the machine's own: its loader and it belong together.
        wanted = sorted(set(needs) - seen - {"libc6"})
        if not wanted:
            raise Unavailable("%s needs libraries that were not found: %s" % (packages[0], ", ".join(absent)))


def forget(target, *names):
    """Removes files and folders that were unpacked and are not needed."""
    for path in (os.path.join(target, "root", name) for name in names):
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.remove(path)


def wrap(target, name, program, variables=()):
    """Writes `target/name`, which starts the unpacked program with its libraries. `variables` are pairs of a name and a
    path in the package that the program must be told."""
    folders = ":".join("$here/" + os.path.relpath(f, target) for f in library_folders(os.path.join(target, "root")))
    with open(os.path.join(target, name), "w") as out:
        told = "".join('export %s="$here/root/%s"\n' % pair for pair in variables)
        out.write(WRAPPER % (folders or "$here/root/usr/lib", told, program))
    os.chmod(os.path.join(target, name), 0o755)
