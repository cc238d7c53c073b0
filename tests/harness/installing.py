"""Libraries that only tests need, at pinned versions and hashes, in a cache of their own. Nothing is installed elsewhere.

Several may ask at once: the folder appears whole, by a rename, or not at all.
"""
import fcntl
import hashlib
import os
import subprocess
import sys
import tempfile


class Broken(Exception):
    """Something that a test needs is not there."""


def call(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                          text=True, errors="replace", **options)
    if done.returncode != 0:
        raise Broken("%s failed:\n%s" % (" ".join(command[:5]), done.stdout[-2000:]))


def installed(cache, kind, files, fill):
    """The folder with the libraries that `files` pin; filled by `fill(folder)` if there is none for them yet."""
    digest = hashlib.sha256(b"".join(open(file, "rb").read() for file in files))
    digest.update(("%d.%d" % sys.version_info[:2]).encode())
    target = os.path.join(os.path.realpath(cache), "%s-%s" % (kind, digest.hexdigest()[:16]))
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(os.path.join(os.path.dirname(target), "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(target):
            with tempfile.TemporaryDirectory(dir=os.path.dirname(target)) as folder:
                filled = os.path.join(folder, "filled")
                os.mkdir(filled)
                print("installing the %s libraries" % kind, flush=True)
                fill(filled, folder)
                os.rename(filled, target)
    return target


def python_libraries(cache, requirements):
    """The folder with the Python libraries of a requirements file, for PYTHONPATH."""
    def fill(target, folder):
        python = sys.executable
        if subprocess.call([python, "-m", "pip", "--version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
            call(python, "-m", "venv", os.path.join(folder, "venv"))
            python = os.path.join(folder, "venv", "bin", "python")
        call(python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-cache-dir", "--no-deps",
             "--require-hashes", "--only-binary=:all:", "--target", target, "-r", requirements)
    return installed(cache, "python", [requirements], fill)
