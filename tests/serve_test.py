#!/usr/bin/env python3
"""Tests of `bezel serve`, over the network of this machine. Run from the repository's root: python3 tests/serve_test.py

$BEZEL names another program than build/native/bezel.
"""
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
from pathlib import Path

BEZEL = os.environ.get("BEZEL", "build/native/bezel")
MESSAGES = [{"role": "user", "content": "Why is the sky blue?"}]
# The marks that end an answer, which a model of random weights would soon write: out of its reach.
ENDLESS = {str(token): -100 for token in (1, 48, 49, 50, 51, 100, 101, 105, 106)}


class Program:
    """A running server."""

    def __init__(self, *arguments, store="/nonexistent"):
        self.process = subprocess.Popen(
            [BEZEL, "serve", "--port", "0", "--backend", "cpu", *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "OLLAMA_MODELS": str(store)})
        line = self.process.stdout.readline().decode()
        found = re.fullmatch(r"bezel is at (https?)://(.*):(\d+)\n", line)
        assert found, (line, self.process.stderr.read().decode())
        self.scheme, self.host, self.port = found[1], found[2].strip("[]"), int(found[3])

    def stop(self, how=signal.SIGINT):
        self.process.send_signal(how)
        code = self.process.wait(timeout=20)
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def connect(self):
        if self.scheme == "https":
            context = ssl._create_unverified_context()
            return http.client.HTTPSConnection(self.host, self.port, timeout=60, context=context)
        return http.client.HTTPConnection(self.host, self.port, timeout=60)

    def ask(self, method, path, body=None, **headers):
        """(status, headers, body) of one request; x_y stands for the header x-y."""
        connection = self.connect()
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            connection.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def raw(self, data, timeout=20):
        """Bytes in, all bytes out."""
        with socket.create_connection((self.host, self.port), timeout=timeout) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            out = b""
            while piece := s.recv(65536):
                out += piece
            return out

    def chat(self, **more):
        status, _, body = self.ask("POST", "/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 5, **more})
        return status, json.loads(body)

    def status(self):
        return json.loads(self.ask("GET", "/api/status")[2])


class Serve(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name)
        models = cls.path / "models"
        models.mkdir()
        cls.model = models / "tiny.gguf"
        subprocess.run([BEZEL, "synth", "tiny", "-o", cls.model, "--quant", "q8_0"], check=True, capture_output=True)
        (models / "note.txt").write_text("not a model")
        (models / ".hidden.gguf").write_text("hidden")
        (models / "odd name%.gguf").write_bytes(bytes(range(256)) * 4000)
        cls.content = (models / "odd name%.gguf").read_bytes()
        for part in (1, 2):
            (models / f"split-0000{part}-of-00002.gguf").write_text(f"part {part}")
        cls.make_store(cls.path / "store")
        app = cls.path / "app"
        (app / "assets").mkdir(parents=True)
        (app / "index.html").write_text("<title>app</title>")
        (app / "assets/x.wasm").write_bytes(b"\0asm")
        (app / "assets/x.js").write_text("1")
        (app / ".env").write_text("SECRET")
        (cls.path / "secret.txt").write_text("SECRET")
        (cls.path / "app-secret").mkdir()
        (cls.path / "app-secret/x.txt").write_text("SECRET")
        (app / "out.txt").symlink_to(cls.path / "secret.txt")
        (app / "outside").symlink_to(cls.path)
        (app / "inside.html").symlink_to(app / "index.html")
        cls.server = Program("-m", cls.model, "--models", models, "--app", app,
                             "--origin", "https://app.example.org", store=cls.path / "store")
        cls.ask = cls.server.ask

    @classmethod
    def make_store(cls, store):
        (store / "blobs").mkdir(parents=True)

        def blob(kind, content):
            digest = hashlib.sha256(content).hexdigest()
            (store / "blobs" / f"sha256-{digest}").write_bytes(content)
            return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}

        config = blob("application/vnd.docker.container.image.v1+json", json.dumps(
            {"model_format": "gguf", "model_family": "gemma4", "model_type": "5.1B", "file_type": "Q8_0",
             "renderer": "gemma4-small"}).encode())
        model = blob("application/vnd.ollama.image.model", cls.model.read_bytes())
        params = blob("application/vnd.ollama.image.params", b'{"top_k": 64}')
        manifest = store / "manifests/registry.ollama.ai/library/gemma4/tiny"
        manifest.parent.mkdir(parents=True)
        manifest.write_text(json.dumps({"schemaVersion": 2, "config": config, "layers": [model, params]}))
        cls.digest = model["digest"]

    @classmethod
    def tearDownClass(cls):
        code = cls.server.stop()
        cls.folder.cleanup()
        assert code == 0, code


class App(Serve):
    def test_pages(self):
        for path in ("/", "/index.html", "/chat", "/chat/5?x=1", "/assets", "/inside.html"):
            status, headers, body = self.ask("GET", path)
            self.assertEqual((status, body), (200, b"<title>app</title>"), path)
            self.assertEqual(headers["Content-Type"], "text/html; charset=utf-8")
            self.assertEqual(headers["Cross-Origin-Opener-Policy"], "same-origin")
            self.assertEqual(headers["Cross-Origin-Embedder-Policy"], "require-corp")
            self.assertEqual(headers["Cross-Origin-Resource-Policy"], "same-origin")
        status, headers, body = self.ask("GET", "/assets/x.wasm")
        self.assertEqual((status, headers["Content-Type"], body), (200, "application/wasm", b"\0asm"))
        self.assertEqual(self.ask("GET", "/assets/x.js")[1]["Content-Type"], "text/javascript; charset=utf-8")
        status, headers, body = self.ask("HEAD", "/assets/x.wasm")
        self.assertEqual((status, headers["Content-Length"], body), (200, "4", b""))
        self.assertEqual(self.ask("GET", "/missing.js")[0], 404)
        self.assertEqual(self.ask("POST", "/", "x")[0], 405)

    def test_no_way_out(self):
        for path in ("/../secret.txt", "/%2e%2e/secret.txt", "/..%2fsecret.txt", "/assets/../../secret.txt",
                     "/assets/..%2f..%2fsecret.txt", "/out.txt", "/outside/secret.txt", "/.env", "/%2eenv",
                     "/assets/.%2e/.env", "/..%5csecret.txt", "/%00", "/x%00.html", "//etc/passwd",
                     "/%2fetc%2fpasswd", "/../app-secret/x.txt", "/%c0%ae%c0%ae/secret.txt", "/.git/config",
                     "/%252e%252e/secret.txt", "/" + "a/" * 2000 + "x.txt", "/" + "a" * 5000 + ".txt"):
            with self.subTest(path[:40]):
                answer = self.server.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
                self.assertNotIn(b"SECRET", answer)
                self.assertNotIn(b"root:", answer)
                self.assertRegex(answer, rb"^HTTP/1.1 4\d\d |<title>app</title>$")

    def test_without_an_app(self):
        server = Program("--app", self.path / "models")  # a folder without index.html
        try:
            self.assertEqual(server.ask("GET", "/")[0], 404)
        finally:
            self.assertEqual(server.stop(signal.SIGTERM), 0)


class Models(Serve):
    def list(self):
        status, headers, body = self.ask("GET", "/api/models")
        self.assertEqual((status, headers["Content-Type"]), (200, "application/json"))
        return {model["name"]: model for model in json.loads(body)["models"]}

    def test_list(self):
        models = self.list()
        self.assertEqual(set(models), {"tiny", "odd name%", "split", "gemma4:tiny"})
        ollama = models["gemma4:tiny"]
        self.assertEqual(ollama["digest"], self.digest)
        self.assertEqual(ollama["size"], self.model.stat().st_size)
        self.assertEqual(ollama["family"], "gemma4")
        self.assertEqual(ollama["hints"], {"renderer": "gemma4-small", "modelName": "gemma4:tiny",
                                           "parameterSize": "5.1B", "ollamaParams": '{"top_k": 64}'})
        self.assertEqual(models["tiny"]["hints"], {})
        self.assertEqual([p["size"] for p in models["split"]["parts"]], [6, 6])

    def test_every_url_gives_its_bytes(self):
        for model in self.list().values():
            whole = b""
            for part in model["parts"]:
                status, headers, body = self.ask("GET", part["url"])
                self.assertEqual((status, len(body)), (200, part["size"]))
                whole += body
            self.assertEqual(len(whole), model["size"])
            if "digest" in model:
                self.assertEqual("sha256:" + hashlib.sha256(whole).hexdigest(), model["digest"])
                self.assertEqual(self.ask("GET", f"/api/models/{model['digest']}/blob")[2], whole)
        self.assertEqual(self.ask("GET", "/api/models/split/blob/1")[2], b"part 2")

    def test_ranges(self):
        url = "/api/models/odd%20name%25/blob"
        size = len(self.content)
        status, headers, body = self.ask("GET", url)
        self.assertEqual((status, body), (200, self.content))
        self.assertEqual(headers["Accept-Ranges"], "bytes")
        self.assertEqual(headers["Content-Type"], "application/octet-stream")
        for text, first, end in (("0-0", 0, 1), ("5-600000", 5, 600001), ("1000-", 1000, size),
                                 ("-7", size - 7, size), (f"-{size * 2}", 0, size),
                                 (f"{size - 1}-{size * 2}", size - 1, size)):
            status, headers, body = self.ask("GET", url, range=f"bytes={text}")
            self.assertEqual((status, body), (206, self.content[first:end]), text)
            self.assertEqual(headers["Content-Range"], f"bytes {first}-{end - 1}/{size}")
            self.assertEqual(headers["Content-Length"], str(end - first))
        for text in (f"{size}-", f"{size}-{size + 5}", "-0"):
            status, headers, body = self.ask("GET", url, range=f"bytes={text}")
            self.assertEqual((status, headers["Content-Range"], body), (416, f"bytes */{size}", b""), text)
        for text in ("bytes=0-1,5-6", "bytes=x", "lines=0-1", "bytes=5-1"):
            status, headers, body = self.ask("GET", url, range=text)
            self.assertEqual((status, len(body)), (200, size), text)

    def test_conditions(self):
        for url, etag in (("/api/models/gemma4:tiny/blob", f'"{self.digest}"'), ("/api/models/odd%20name%25/blob", None)):
            headers = self.ask("HEAD", url)[1]
            etag = etag or headers["ETag"]
            self.assertEqual(headers["ETag"], etag)
            self.assertEqual(self.ask("GET", url, if_none_match=f'"x", W/{etag}')[::2], (304, b""))
            self.assertEqual(self.ask("GET", url, if_none_match="*")[0], 304)
            self.assertEqual(self.ask("HEAD", url, if_none_match=etag)[0], 304)
            self.assertEqual(self.ask("GET", url, if_none_match='"x"', range="bytes=0-1")[0], 206)
            self.assertEqual(self.ask("GET", url, if_range=etag, range="bytes=0-1")[0], 206)
            for other in ('"x"', "W/" + etag, "Wed, 21 Oct 2015 07:28:00 GMT"):
                self.assertEqual(self.ask("GET", url, if_range=other, range="bytes=0-1")[0], 200, other)
            self.assertEqual(self.ask("GET", url, if_match='"x"')[0], 412)

    def test_head(self):
        status, headers, body = self.ask("HEAD", "/api/models/odd%20name%25/blob", range="bytes=0-1")
        self.assertEqual((status, headers["Content-Length"], body), (200, str(len(self.content)), b""))
        self.assertEqual(headers["Accept-Ranges"], "bytes")

    def test_a_changed_file_has_another_tag(self):
        path = self.path / "models/changing.gguf"
        path.write_text("one")
        first = self.ask("HEAD", "/api/models/changing/blob")[1]["ETag"]
        path.write_text("two!")
        self.assertNotEqual(self.ask("HEAD", "/api/models/changing/blob")[1]["ETag"], first)
        path.unlink()
        self.assertEqual(self.ask("GET", "/api/models/changing/blob")[0], 404)

    def test_names_are_no_paths(self):
        for name in ("..%2F..%2Fsecret.txt", "%2Fetc%2Fpasswd", "note.txt", "note", ".hidden", "nothere", "",
                     "sha256:" + "0" * 64, "sha256:..%2F..%2Fx", "..%2Ftiny", "registry.ollama.ai%2F..%2F..%2Fx:y"):
            status, _, body = self.ask("GET", f"/api/models/{name}/blob")
            self.assertEqual(status, 404, name)
            self.assertIn("message", json.loads(body)["error"])
        for path in ("split/blob/2", "split/blob/x", "split/blob/-1", "split/blob/99999999999999999999", "split/blob/1/2",
                     "split/bob"):
            self.assertEqual(self.ask("GET", "/api/models/" + path)[0], 404, path)

    def test_a_pipe_of_requests(self):
        request = "GET /api/models/split/blob HTTP/1.1\r\nHost: localhost\r\n\r\n"
        self.assertEqual(self.server.raw((request * 3).encode()).count(b"part 1"), 3)


class Access(Serve):
    def test_hosts(self):
        port = self.server.port
        for host in ("localhost", f"127.0.0.1:{port}", "[::1]:5", "LocalHost", "app.example.org"):
            self.assertEqual(self.ask("GET", "/api/status", host=host)[0], 200, host)
        for host in ("evil.example", f"evil.example:{port}", "localhost.evil.example", "127.0.0.1.nip.example"):
            for path in ("/", "/api/models", "/v1/models"):
                status, _, body = self.ask("GET", path, host=host)
                self.assertEqual(status, 403, host)
        self.assertRegex(self.server.raw(b"GET /api/status HTTP/1.0\r\n\r\n"), b"^HTTP/1.1 403 ")

    def test_own_origin(self):
        port = self.server.port
        status, headers, _ = self.ask("GET", "/api/models", host=f"localhost:{port}", origin=f"http://localhost:{port}")
        self.assertEqual(status, 200)
        self.assertNotIn("Access-Control-Allow-Origin", headers)
        self.assertEqual(headers["Cross-Origin-Resource-Policy"], "same-origin")

    def test_foreign_origins(self):
        for origin in ("https://evil.example", "null", "http://localhost:1", "http://app.example.org",
                       "https://app.example.org.evil.example"):
            for method, path in (("GET", "/api/models"), ("GET", "/api/models/tiny/blob"), ("OPTIONS", "/v1/models"),
                                 ("POST", "/v1/chat/completions")):
                status, headers, body = self.ask(method, path, origin=origin)
                self.assertEqual(status, 403, (origin, path))
                self.assertNotIn("Access-Control-Allow-Origin", headers)
                self.assertLess(len(body), 500)
        self.assertEqual(self.ask("GET", "/api/models/tiny/blob", sec_fetch_site="cross-site")[0], 403)

    def test_allowed_origin(self):
        status, headers, body = self.ask("GET", "/api/models/tiny/blob", origin="https://app.example.org", range="bytes=0-3")
        self.assertEqual((status, body), (206, b"GGUF"))
        self.assertEqual(headers["Access-Control-Allow-Origin"], "https://app.example.org")
        self.assertEqual(headers["Vary"], "Origin")
        self.assertIn("Content-Range", headers["Access-Control-Expose-Headers"])
        status, headers, _ = self.ask(
            "OPTIONS", "/v1/chat/completions", origin="https://app.example.org",
            access_control_request_method="POST", access_control_request_headers="content-type,x-stainless-os",
            access_control_request_private_network="true")
        self.assertEqual(status, 204)
        self.assertIn("POST", headers["Access-Control-Allow-Methods"])
        self.assertEqual(headers["Access-Control-Allow-Headers"], "content-type,x-stainless-os")
        self.assertEqual(headers["Access-Control-Allow-Private-Network"], "true")
        self.assertEqual(headers["Access-Control-Allow-Origin"], "https://app.example.org")

    def test_bound_to_loopback(self):
        self.assertEqual(self.server.host, "127.0.0.1")


class Chat(Serve):
    def stream(self, **more):
        status, headers, body = self.ask("POST", "/v1/chat/completions",
                                         {"messages": MESSAGES, "max_tokens": 8, "stream": True, **more})
        self.assertEqual((status, headers["Content-Type"]), (200, "text/event-stream"))
        events = body.decode().split("\n\n")
        self.assertEqual(events.pop(), "")
        self.assertTrue(all(event.startswith("data: ") for event in events))
        self.assertEqual(events.pop(), "data: [DONE]")
        return [json.loads(event[6:]) for event in events]

    def test_models(self):
        listed = json.loads(self.ask("GET", "/v1/models")[2])
        self.assertEqual([m["id"] for m in listed["data"]], ["tiny"])

    def test_completion(self):
        status, done = self.server.chat(model="tiny", seed=3)
        self.assertEqual(status, 200)
        self.assertEqual((done["object"], done["model"]), ("chat.completion", "tiny"))
        self.assertEqual(done["usage"]["completion_tokens"], 5)
        again = self.server.chat(seed=3)[1]
        self.assertEqual(again["choices"], done["choices"])
        self.assertGreater(again["usage"]["prompt_tokens_details"]["cached_tokens"], 0)

    def test_stream(self):
        chunks = self.stream(seed=3, stream_options={"include_usage": True})
        text = "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks[:-1])
        done = self.server.chat(seed=3, max_tokens=8)[1]
        self.assertEqual(text, done["choices"][0]["message"]["content"])
        self.assertEqual(chunks[-2]["choices"][0]["finish_reason"], done["choices"][0]["finish_reason"])
        self.assertEqual(chunks[-1]["usage"]["completion_tokens"], 8)

    def test_errors(self):
        for body, status in (("", 400), ("{", 400), ("[]", 400), ("[" * 100000, 400), ('{"a":' * 200 + "1" + "}" * 200, 400),
                             ("{}", 400), ('{"messages": 5}', 400), ('{"model": "gpt-4", "messages": []}', 404),
                             ('{"model": 5}', 400), (json.dumps({"messages": MESSAGES, "n": 2}), 400),
                             (json.dumps({"messages": MESSAGES, "stream": True, "response_format": {"type": "json_object"}}), 400),
                             (json.dumps({"messages": [{"role": "user", "content": "a b " * 9000}], "stream": True}), 400),
                             (b'{"messages": [{"role": "user", "content": "\xff"}]}', 400)):
            got, headers, answer = self.ask("POST", "/v1/chat/completions", body)
            with self.subTest(body[:60]):
                self.assertEqual((got, headers["Content-Type"]), (status, "application/json"))
                error = json.loads(answer)["error"]
                self.assertEqual(error["type"], "invalid_request_error")
                self.assertTrue(error["message"].endswith("."), error)
                self.assertEqual(error["code"], "model_not_found" if status == 404 else None)
        self.assertEqual(self.ask("GET", "/v1/chat/completions")[0], 405)
        self.assertEqual(self.ask("GET", "/v1/nothing")[0], 404)
        self.assertEqual(self.ask("GET", "/api")[0], 404)

    def test_malformed_http(self):
        for data in (b"", b"\r\n\r\n", b"GET\r\n\r\n", b"\0" * 1000, b"GET / HTTP/1.1\r\n\r\n", b"A" * 100000,
                     b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
                     b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000000000\r\n\r\n",
                     b"POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                     b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\nshort"):
            with self.subTest(data[:40]):
                answer = self.server.raw(data) if len(data) < 50000 else b""
                self.assertNotIn(b" 200 ", answer)
        self.assertEqual(self.server.status()["models"][0]["name"], "tiny")

    def test_a_large_body_is_refused(self):
        answer = self.server.raw(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n")
        self.assertRegex(answer, b"^HTTP/1.1 413 ")

    def test_a_refusal_is_heard_by_who_still_sends(self):
        with socket.create_connection((self.server.host, self.server.port), timeout=20) as s:
            s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n")
            s.sendall(b"x" * 300000)
            time.sleep(0.2)
            self.assertTrue(s.recv(100).startswith(b"HTTP/1.1 413 "))

    def test_expect_continue(self):
        with socket.create_connection((self.server.host, self.server.port), timeout=20) as s:
            s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
                      b"Expect: 100-continue\r\n\r\n")
            self.assertTrue(s.recv(100).startswith(b"HTTP/1.1 100 "))
            s.sendall(b"{}")
            self.assertTrue(s.recv(100).startswith(b"HTTP/1.1 400 "))

    def test_http_1_0(self):
        body = json.dumps({"messages": MESSAGES, "max_tokens": 3, "stream": True}).encode()
        with socket.create_connection((self.server.host, self.server.port), timeout=30) as s:
            s.sendall(b"POST /v1/chat/completions HTTP/1.0\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            answer = b""
            while piece := s.recv(65536):
                answer += piece
        self.assertTrue(answer.endswith(b"data: [DONE]\n\n"))
        self.assertNotIn(b"chunked", answer)

    def wait_for_requests(self, count, seconds=10):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.server.status()["models"][0]["requests"] == count:
                return True
            time.sleep(0.05)
        return False

    def test_a_client_that_leaves_stops_its_answer(self):
        for stream in (True, False):
            body = json.dumps({"messages": MESSAGES, "stream": stream, "max_tokens": 4000,
                               "logit_bias": ENDLESS}).encode()
            s = socket.create_connection((self.server.host, self.server.port), timeout=30)
            s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            if stream:
                self.assertIn(b"200 OK", s.recv(500))
            self.assertTrue(self.wait_for_requests(1), f"stream {stream}")
            s.close()
            self.assertTrue(self.wait_for_requests(0), f"stream {stream}")

    def test_requests_take_turns(self):
        expected = self.server.chat(seed=1, max_tokens=6)[1]["choices"]
        answers = []

        def ask():
            answers.append(self.server.chat(seed=1, max_tokens=6))

        threads = [threading.Thread(target=ask) for _ in range(6)]
        for thread in threads:
            thread.start()
        self.assertEqual(self.ask("GET", "/api/status")[0], 200)
        for thread in threads:
            thread.join()
        self.assertEqual([status for status, _ in answers], [200] * 6)
        for _, done in answers:
            self.assertEqual(done["choices"], expected)


class Starting(Serve):
    def bad(self, *arguments):
        port = [] if "--port" in arguments else ["--port", "0"]
        done = subprocess.run([BEZEL, "serve", *port, *map(str, arguments)], capture_output=True, timeout=20,
                              env={**os.environ, "OLLAMA_MODELS": "/nonexistent"})
        self.assertEqual(done.returncode, 1, done)
        self.assertTrue(done.stderr.startswith(b"bezel: "), done.stderr)
        return done.stderr.decode()

    def test_wrong_settings(self):
        self.assertIn("nothere", self.bad("-m", "nothere"))
        self.assertIn("folder", self.bad("--models", "/nonexistent"))
        self.assertIn("folder", self.bad("--app", "/nonexistent"))
        self.assertIn("origin", self.bad("--origin", "*"))
        self.assertIn("together", self.bad("--cert", "x"))
        self.assertIn("certificate", self.bad("--cert", "x", "--key", "y"))
        self.assertIn("host", self.bad("--host", "no.such.host.invalid"))
        self.assertIn("Port", self.bad("--port", self.server.port))

    def test_a_model_that_cannot_be_loaded(self):
        broken = self.path / "broken.gguf"
        broken.write_text("not a model")
        server = Program("-m", broken)
        try:
            status, answer = server.chat()
            self.assertEqual((status, answer["error"]["type"]), (500, "server_error"))
            self.assertIn("broken.gguf", answer["error"]["message"])
            self.assertEqual(server.status()["models"][0]["state"], "failed")
        finally:
            self.assertEqual(server.stop(), 0)

    def test_no_model(self):
        server = Program()
        try:
            status, answer = server.chat(model="x")
            self.assertEqual(status, 404)
            self.assertIn("-m", answer["error"]["message"])
            self.assertEqual(json.loads(server.ask("GET", "/v1/models")[2])["data"], [])
        finally:
            self.assertEqual(server.stop(), 0)

    def test_stops_in_the_middle_of_an_answer(self):
        server = Program("-m", self.model)
        body = json.dumps({"messages": MESSAGES, "stream": True, "max_tokens": 4000}).encode()
        with socket.create_connection((server.host, server.port), timeout=30) as s:
            s.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            self.assertIn(b"200 OK", s.recv(500))
            self.assertEqual(server.stop(), 0)

    @unittest.skipUnless(shutil.which("openssl"), "needs the openssl program")
    def test_https(self):
        cert, key = self.path / "cert.pem", self.path / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert,
                        "-days", "1", "-subj", "/CN=localhost"], check=True, capture_output=True)
        server = Program("-m", self.model, "--models", self.path / "models", "--cert", cert, "--key", key)
        try:
            self.assertEqual(server.scheme, "https")
            self.assertEqual(server.ask("GET", "/api/models/odd%20name%25/blob")[2], self.content)
            self.assertEqual(server.chat()[0], 200)
            self.assertEqual(server.ask("GET", "/api/status", host="localhost:5", origin="https://localhost:5")[0], 200)
            self.assertEqual(server.ask("GET", "/api/status", host="localhost:5", origin="http://localhost:5")[0], 403)
            with socket.create_connection((server.host, server.port), timeout=20) as s:
                s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")  # not encrypted
                try:
                    self.assertNotIn(b"200", s.recv(1000))
                except ConnectionResetError:
                    pass
            connection = server.connect()
            connection.request("POST", "/v1/chat/completions",
                               json.dumps({"messages": MESSAGES, "stream": True, "max_tokens": 4000}))
            connection.getresponse().read(100)
            connection.close()
            for _ in range(100):
                if server.status()["models"][0]["requests"] == 0:
                    break
                time.sleep(0.05)
            self.assertEqual(server.status()["models"][0]["requests"], 0)
        finally:
            self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    unittest.main()
