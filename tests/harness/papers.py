"""Certificates for tests, made by the openssl command: an authority, and what it signs. Keys stand in the folder only."""
import os
import subprocess


def openssl(*arguments):
    done = subprocess.run(("openssl",) + arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError("openssl %s: %s" % (arguments[0], done.stderr.strip()))


class Papers:
    """An authority in a folder of its own: `ca`, and NAME.pem with NAME.key for each that it has signed."""

    def __init__(self, folder, name):
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        self.ca = self.path("ca.pem")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", "/CN=" + name, "-keyout", self.path("ca.key"), "-out", self.ca)

    def path(self, name):
        return os.path.join(self.folder, name)

    def sign(self, name, alternatives="DNS:localhost,IP:127.0.0.1"):
        """The paths of a new certificate and its key."""
        key, request, certificate, extra = (self.path(name + ending) for ending in (".key", ".csr", ".pem", ".ext"))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name,
                "-keyout", key, "-out", request)
        with open(extra, "w") as text:
            text.write("subjectAltName=%s\nbasicConstraints=CA:FALSE\n" % alternatives)
        openssl("x509", "-req", "-in", request, "-CA", self.ca, "-CAkey", self.path("ca.key"), "-CAcreateserial",
                "-days", "2", "-extfile", extra, "-out", certificate)
        return certificate, key
