"""A forge for tests: git's own http-backend on loopback, behind a password. Prints its port."""

import base64
import http.server
import os
import subprocess
import sys

ALLOWED = "Basic " + base64.b64encode(b"app:secret").decode()


class Forge(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.0"

    def log_message(self, *_):
        pass

    def serve(self):
        if self.headers.get("Authorization") != ALLOWED:
            self.send_response(401)
            self.send_header("WWW-Authenticate", "Basic realm=forge")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": sys.argv[1],
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REMOTE_USER": "app",
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
        }
        for header, name in (("Content-Encoding", "HTTP_CONTENT_ENCODING"), ("Git-Protocol", "GIT_PROTOCOL")):
            if self.headers.get(header):
                env[name] = self.headers[header]
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b"".join(iter(self.chunk, b""))
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        env["CONTENT_LENGTH"] = str(len(body))
        answer = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True).stdout
        head, _, rest = answer.partition(b"\r\n\r\n")
        fields = [line.decode().split(": ", 1) for line in head.split(b"\r\n")]
        status = next((int(value.split()[0]) for name, value in fields if name == "Status"), 200)
        self.send_response(status)
        for name, value in fields:
            if name != "Status":
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(rest)

    def chunk(self):
        size = int(self.rfile.readline(), 16)
        data = self.rfile.read(size)
        self.rfile.readline()
        return data

    do_GET = do_POST = serve


forge = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forge)
print(forge.server_address[1], flush=True)
forge.serve_forever()
