"""Certificates made on the spot with the openssl program, and what clients need of them."""

import os
import ssl
import subprocess


def openssl(*args):
    subprocess.run(["openssl", *args], check=True, stdin=subprocess.DEVNULL, capture_output=True)


class Authority:
    """A certificate authority in a directory of its own."""

    def __init__(self, top, name="ca"):
        self.dir = os.path.join(str(top), name)
        os.mkdir(self.dir)
        self.cert, self.key = self.path("ca.pem"), self.path("ca.key")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-subj", f"/CN={name}", "-keyout", self.key, "-out", self.cert)

    def path(self, name):
        return os.path.join(self.dir, name)

    def issue(self, name, days="2"):
        """(certificate, key) for a server on loopback, or a client."""
        cert, key, request, ext = (self.path(f"{name}.{x}") for x in ("pem", "key", "csr", "ext"))
        with open(ext, "w") as f:
            f.write("subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        openssl("x509", "-req", "-in", request, "-CA", self.cert, "-CAkey", self.key, "-CAcreateserial",
                "-days", days, "-extfile", ext, "-out", cert)
        os.chmod(key, 0o600)
        return cert, key

    def client(self, own=None):
        """A context that trusts this authority alone, and shows (certificate, key) if given."""
        context = ssl.create_default_context(cafile=self.cert)
        if own:
            context.load_cert_chain(*own)
        return context
