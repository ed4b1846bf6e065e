#!/usr/bin/env python3
"""Tests of the command line, from outside. Run from the repository's root: python3 tests/cli_test.py

$BEZEL names another program than build/native/bezel.
"""
import hashlib
import json
import os
import random
import resource
import signal
import struct
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

BEZEL = os.environ.get("BEZEL", "build/native/bezel")
TINY = "tests/data/tiny-e2b.gguf"
COMMANDS = ("run", "serve", "inspect", "tokenize", "eval", "synth", "bench")
SANITIZED = "asan" in BEZEL  # reserves terabytes of address space, so it cannot run under a limit
MEMORY = 1 << 30


def limit_memory():
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def command(*arguments):
    """On the CPU unless a test says otherwise: quick to start, and every machine has one."""
    words = [BEZEL, *map(str, arguments)]
    if words[1:2] in (["run"], ["eval"], ["bench"]) and not {"--backend", "--help"} & set(words):
        words[2:2] = ["--backend", "cpu"]
    return words


def bezel(*arguments, stdin="", env=None):
    return subprocess.run(
        command(*arguments), input=stdin.encode(), capture_output=True, timeout=60,
        preexec_fn=limit_memory, env={**os.environ, **(env or {})})


def write_value(kind, value):
    """One GGUF value: 4 is u32, 8 a string, 9 an array of strings."""
    def text(t):
        return struct.pack("<Q", len(t)) + t
    if kind == 4:
        return struct.pack("<II", 4, value)
    if kind == 8:
        return struct.pack("<I", 8) + text(value)
    return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(text, value))


def gguf(values, tensors=(), data=b"", counts=None):
    """A file of (key, kind, value) and (name, shape, type, offset)."""
    tensor_count, value_count = counts or (len(tensors), len(values))
    out = b"GGUF" + struct.pack("<IQQ", 3, tensor_count, value_count)
    for key, kind, value in values:
        out += struct.pack("<Q", len(key)) + key + write_value(kind, value)
    for name, shape, kind, offset in tensors:
        out += struct.pack("<Q", len(name)) + name + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        out += struct.pack("<IQ", kind, offset)
    return out + b"\0" * (-len(out) % 32) + data


class CommandLine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = Path(cls.folder.name)
        cls.model = cls.path / "tiny.gguf"
        done = bezel("synth", "tiny", "-o", cls.model, "--quant", "q8_0")
        assert done.returncode == 0, done.stderr

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def good(self, *arguments, **more):
        done = bezel(*arguments, **more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr, b"")
        return done.stdout.decode()  # fails on what is not UTF-8

    def bad(self, *arguments, code=1, **more):
        """The message of a command that must fail with one sentence."""
        done = bezel(*arguments, **more)
        self.assertEqual(done.returncode, code, (arguments, done.stdout, done.stderr[-2000:]))
        message = done.stderr.decode()
        self.assertTrue(message.startswith("bezel: "), message)
        if code == 1:
            self.assertEqual(message.count("\n"), 1, message)
            self.assertTrue(message.endswith(".\n"), message)
        return message

    def file(self, name, content):
        path = self.path / name
        path.write_bytes(content)
        return path


class Usage(CommandLine):
    def test_help(self):
        text = self.good("--help")
        for command in COMMANDS:
            self.assertIn(command, text)
            self.assertIn("Usage", self.good(command, "--help").replace("usage", "Usage"))
        self.assertRegex(self.good("--version"), r"^bezel \d+\.\d+\.\d+\n$")

    def test_wrong_usage(self):
        self.assertIn("--nonsense", self.bad("run", "--nonsense", code=2))
        self.assertIn("There is no command 'dance'.", self.bad("dance", code=2))
        for arguments in ((), ("inspect",), ("eval", TINY), ("synth", "tiny"), ("tokenize", TINY),
                          ("run", "--max", "many", "x"), ("run", "--top-p", "2", "x"),
                          ("run", "--context", "0", "x"), ("run", "--backend", "abacus", "x"),
                          ("bench",), ("bench", TINY, "-n", "0"), ("bench", TINY, "-p", "many"),
                          ("inspect", TINY, "extra")):
            with self.subTest(arguments):
                self.bad(*arguments, code=2)

    def test_the_embedded_model_answers_where_none_is_named(self):
        self.assertEqual(self.good("run", "--backend", "cpu", "--greedy", "What is 12 + 30?"), "12 + 30 = 42\n")

    def test_missing_model(self):
        for command in (("inspect",), ("run", "-m"), ("tokenize",), ("eval",)):
            rest = {"tokenize": ["x"], "eval": ["--ids", "2"], "run": ["hi"]}.get(command[0], [])
            with self.subTest(command):
                message = self.bad(*command, self.path / "none.gguf", *rest)
                self.assertIn("none.gguf", message)

    def test_directory_as_model(self):
        self.bad("inspect", self.path)
        (self.path / "folder.gguf").mkdir()
        self.assertIn("folder.gguf", self.bad("inspect", self.path / "folder.gguf"))


class Inspect(CommandLine):
    def test_text(self):
        text = self.good("inspect", self.model)
        self.assertIn("synthetic tiny", text)
        self.assertIn("6 (2 global", text)
        self.assertNotIn("blk.0.attn_q.weight", text)
        self.assertIn("blk.0.attn_q.weight", self.good("inspect", self.model, "--tensors"))

    def test_json(self):
        d = json.loads(self.good("inspect", self.model, "--json"))
        self.assertEqual((d["layers"], d["kv_layers"], d["width"], d["vocabulary"]), (6, 3, 256, 2048))
        self.assertEqual(d["file_bytes"], self.model.stat().st_size)
        self.assertEqual(sum(t["tensors"] for t in d["types"]), d["tensors"])
        self.assertEqual({t["type"] for t in d["types"]}, {"F32", "Q8_0", "BF16"})
        full = json.loads(self.good("inspect", self.model, "--json", "--tensors"))
        self.assertEqual(len(full["tensor_list"]), d["tensors"])
        embedding = next(t for t in full["tensor_list"] if t["name"] == "token_embd.weight")
        self.assertEqual(embedding, {"name": "token_embd.weight", "type": "Q8_0", "shape": [256, 2048],
                                     "bytes": 256 * 2048 // 32 * 34})

    def test_synth(self):
        for preset in ("tiny", "tiny-moe"):
            out = self.path / f"{preset}-again.gguf"
            self.assertEqual(self.good("synth", preset, "-o", out), "")
            self.assertIn(f"synthetic {preset}", self.good("inspect", out))
        self.assertIn("e3b", self.bad("synth", "e3b", "-o", self.path / "x.gguf"))
        self.assertIn("q9", self.bad("synth", "tiny", "--quant", "q9", "-o", self.path / "x.gguf"))
        self.bad("synth", "tiny", "-o", self.path / "no" / "folder" / "x.gguf")
        self.assertFalse((self.path / "x.gguf").exists())


class Tokenize(CommandLine):
    def test_ids_and_pieces(self):
        ids = self.good("tokenize", self.model, "hello <turn|>")
        self.assertRegex(ids, r"^\d+(,\d+)*\n$")
        self.assertNotIn("106", ids.strip().split(","))
        self.assertIn("106", self.good("tokenize", self.model, "hello <turn|>", "--specials").strip().split(","))
        lines = self.good("tokenize", self.model, "hello", "--pieces").splitlines()
        self.assertEqual("".join(line.split()[1] for line in lines), "hello")
        self.assertEqual(self.good("tokenize", self.model, ""), "\n")


class Eval(CommandLine):
    def read_npy(self, path):
        content = Path(path).read_bytes()
        self.assertEqual(content[:8], b"\x93NUMPY\x01\x00")
        length = struct.unpack("<H", content[8:10])[0]
        self.assertEqual((10 + length) % 64, 0)
        header = content[10:10 + length].decode()
        self.assertTrue(header.endswith("\n"))
        fields = eval(header, {"__builtins__": {}})  # a Python literal, as NumPy defines it
        self.assertEqual((fields["descr"], fields["fortran_order"]), ("<f4", False))
        rows, cols = fields["shape"]
        self.assertEqual(len(content), 10 + length + 4 * rows * cols)
        numbers = struct.unpack(f"<{rows * cols}f", content[10 + length:])
        return [numbers[r * cols:(r + 1) * cols] for r in range(rows)]

    def test_logits(self):
        expected = json.loads(Path("tests/data/tiny-logits.json").read_text())["models"]["tiny-e2b"]
        ids = ",".join(map(str, expected["tokens"]))
        out = self.path / "logits.npy"
        self.assertEqual(self.good("eval", TINY, "--ids", ids, "--logits", out), "")
        got = self.read_npy(out)
        self.assertEqual(len(got), len(expected["logits"]))
        for mine, theirs in zip(got, expected["logits"]):
            self.assertEqual(len(mine), len(theirs))
            self.assertLessEqual(max(abs(a - b) for a, b in zip(mine, theirs)), 2e-5)
        lines = self.good("eval", TINY, "--ids", ids).splitlines()
        self.assertEqual(len(lines), len(got))
        for line, row in zip(lines, got):
            self.assertIn(f"next {row.index(max(row))} ", line)

    def test_backends_agree(self):
        rows = {}
        for backend in ("cpu", "gpu", "auto"):
            out = self.path / f"{backend}.npy"
            # Software GPUs reserve more address space than the limit allows.
            done = subprocess.run(command("eval", TINY, "--ids", "2,5,11,23", "--logits", out, "--backend", backend),
                                  capture_output=True, timeout=60)
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            rows[backend] = self.read_npy(out)
        for backend in ("gpu", "auto"):
            for a, b in zip(rows["cpu"], rows[backend]):
                self.assertLessEqual(max(abs(x - y) for x, y in zip(a, b)), 2e-3)

    def test_pictures_and_recordings(self):
        """Runs of placeholders take soft tokens; the embedded model, as transformers answered."""
        questions = json.loads(Path("tests/data/nano/questions.json").read_text())
        picture = next(q for q in questions if q.get("picture") == "shapes-and-colours-63-0.png")
        sound = next(q for q in questions if q.get("sound") == "spoken-digits-0.wav")
        for kind, asked in (("image", picture), ("audio", sound)):
            file = "tests/data/nano/" + asked["picture" if kind == "image" else "sound"]
            ids = ",".join(map(str, asked["ids"]))
            soft, logits = self.path / "soft.npy", self.path / "logits.npy"
            self.good("eval", "models/nano.gguf", "--ids", ids, f"--{kind}", file, "--soft-tokens", soft,
                      "--logits", logits)
            self.assertEqual(len(self.read_npy(soft)), asked["soft_tokens"])
            self.assertEqual(len(self.read_npy(logits)), len(asked["ids"]))
            message = self.bad("eval", "models/nano.gguf", "--ids", "2,5", f"--{kind}", file)
            self.assertIn(f"1 were given, but --ids has only 0 runs of <|{kind}|>", message)
            short = asked["ids"].copy()
            short.remove(next(i for i in short if short.count(i) > 20))
            message = self.bad("eval", "models/nano.gguf", "--ids", ",".join(map(str, short)), f"--{kind}", file)
            self.assertIn(f"do not match: what was given takes {asked['soft_tokens']}.", message)
        answer = self.good("run", "--greedy", "--image", "tests/data/nano/shapes-and-colours-63-0.png", picture["question"])
        self.assertEqual(answer.strip(), picture["given"])
        self.assertIn("no eyes", self.bad("run", "-m", TINY, "--image", "tests/data/nano/shapes-and-colours-63-0.png", "x"))
        self.assertIn("nowhere.png", self.bad("run", "--image", "nowhere.png", "x"))
        self.assertIn("can be read", self.bad("run", "--audio", "tests/cli_test.py", "x"))

    def test_per_layer_table_in_the_file(self):
        rows = []
        for choice in ("auto", "device", "source"):
            out = self.path / f"{choice}.npy"
            self.good("eval", TINY, "--ids", "2,5,11,5", "--logits", out, "--per-layer", choice)
            rows.append(self.read_npy(out))
        self.assertEqual(rows[0], rows[1])
        self.assertEqual(rows[0], rows[2])

    def test_no_gpu(self):
        nowhere = {**os.environ, "VK_ICD_FILENAMES": "/nowhere.json", "VK_DRIVER_FILES": "/nowhere.json"}
        ids = ["eval", TINY, "--ids", "2,5", "--backend"]
        done = subprocess.run(command(*ids, "auto"), capture_output=True, timeout=60, env=nowhere)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        done = subprocess.run(command(*ids, "gpu"), capture_output=True, timeout=60, env=nowhere)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"No GPU", done.stderr)

    def test_bad_ids(self):
        for ids in ("", "x", "1,,2", "-1", "1.5", "99999999999", "48", "2,48", " 2"):
            with self.subTest(ids):
                self.bad("eval", TINY, f"--ids={ids}", code=2 if ids == "" else 1)
        self.assertIn("48", self.bad("eval", TINY, "--ids", "48"))


class Bench(CommandLine):
    def measure(self, *arguments):
        done = subprocess.run(command("bench", *arguments), capture_output=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout.decode()

    def test_layouts(self):
        lines = self.measure("--layouts", "-r", 1).splitlines()[1:]
        rates = {words[0]: [float(words[i]) for i in (1, 3, 5)] for words in map(str.split, lines)}
        self.assertLessEqual({"Q4_0", "Q8_0", "Q3_K", "Q6_K", "IQ4_XS", "IQ1_S", "IQ3_S", "MXFP4"}, set(rates))
        self.assertFalse({"F16", "Q4_K", "TQ2_0"} & set(rates))
        self.assertGreater(min(map(min, rates.values())), 0)
        self.assertIn("excludes", self.bad("bench", "--layouts", "--kernels", code=2))

    def test_json(self):
        inspected = json.loads(self.good("inspect", self.model, "--json"))
        for backend in ("cpu", "gpu"):
            with self.subTest(backend):
                got = json.loads(self.measure(self.model, "-p", 11, "-n", 4, "-d", 3, "-r", 2, "--json", "--kv", "f16",
                                              "--backend", backend))
                asked = {"prompt": 11, "generate": 4, "depth": 3, "repetitions": 2, "kv": "f16", "backend": backend}
                self.assertEqual({key: got[key] for key in asked}, asked)
                self.assertEqual(got["bytes_per_token"], inspected["bytes_per_token"])
                self.assertEqual((got["decode"]["pass_tokens"], got["prefill"]["pass_tokens"]), (1, 11))
                for part in (got["prefill"], got["decode"]):
                    self.assertGreater(part["tokens_per_second"], 0)
                    self.assertEqual(part["dispatches"], sum(kernel["dispatches"] for kernel in part["kernels"]))
                    labels = [kernel["label"] for kernel in part["kernels"]]
                    self.assertEqual(len(labels), len(set(labels)))
                    for kernel in part["kernels"]:
                        self.assertEqual(kernel["milliseconds"] is not None, got["kernel_times"])
                if backend == "cpu":
                    self.assertEqual((got["device"], got["read_bandwidth"], got["bandwidth_share"]), (None, None, None))
                    self.assertEqual(got["decode"]["kernels"], [])
                else:
                    self.assertTrue(got["device"]["name"])
                    self.assertIn("top_merge", [kernel["label"] for kernel in got["decode"]["kernels"]])
                    share = got["bytes_per_token"] * got["decode"]["tokens_per_second"] / got["read_bandwidth"]
                    self.assertAlmostEqual(got["bandwidth_share"] / share, 1, places=6)

    def test_table(self):
        text = self.measure(self.model, "-p", 4, "-n", 2, "-r", 1, "--backend", "gpu")
        for word in ("prefill", "decode", "bandwidth", "dispatches", "rms_norm", "a pass over 4 tokens"):
            self.assertIn(word, text)

    def test_trial(self):
        words = command("bench", TINY, "-p", 1, "-n", 1, "-r", 1, "--backend", "gpu", "--relays")
        with tempfile.TemporaryDirectory() as folder:
            kept = Path(folder, "bezel", "tuning.json")
            for relays, tries in (("auto", False), ("trial", True), ("auto", True)):
                done = subprocess.run([*words, relays], capture_output=True, timeout=120,
                                      env={**os.environ, "XDG_CACHE_HOME": folder})
                self.assertEqual((done.returncode, done.stderr), (0, b""))
                self.assertEqual(kept.exists(), tries)
            # Its weights are of types that relays do not have.
            self.assertEqual([entry["variant"] for entry in json.loads(kept.read_text())["relays"]], ["off"])
            # Where it cannot be kept, the model is loaded all the same.
            kept.unlink()
            kept.parent.rmdir()
            kept.parent.write_text("in the way")
            done = subprocess.run([*words, "trial"], capture_output=True, timeout=120,
                                  env={**os.environ, "XDG_CACHE_HOME": folder})
            self.assertEqual((done.returncode, done.stderr), (0, b""))

    def test_encoders(self):
        projector, picture, sound = "tests/data/tiny-e2b-mmproj.gguf", "tests/data/media/picture.bmp", "tests/data/media/tone.mp3"
        words = ["bench", projector, "--image", picture, "--audio", sound, "--image-tokens", 70, "-r", 2]
        got = json.loads(self.good(*words, "--json"))
        self.assertEqual((got["backend"], got["device"], got["repetitions"]), ("cpu", None, 2))
        self.assertEqual([encoder["file"] for encoder in got["encoders"]], [picture, sound])
        for encoder in got["encoders"]:
            self.assertGreater(encoder["tokens"], 0)
            self.assertLessEqual(encoder["tokens"], 70)
            self.assertGreater(encoder["encode_ms"], 0)
        text = self.good(*words)
        for word in ("device", "to prepare", "to encode", picture, sound):
            self.assertIn(word, text)
        self.assertIn("no encoders", self.bad("bench", TINY, "--image", picture))

    def test_more_than_the_context(self):
        self.assertIn("context", self.bad("bench", TINY, "-p", 1 << 20))


class Run(CommandLine):
    def test_greedy_repeats(self):
        first = self.good("run", "-m", self.model, "--greedy", "--max", "20", "Hello")
        self.assertEqual(first, self.good("run", "-m", self.model, "--greedy", "--max", "20", "Hello"))
        self.assertGreater(len(first.strip()), 3)

    def test_seeds(self):
        def text(seed):
            return self.good("run", "-m", self.model, "--seed", seed, "--max", "20", "--raw", "Hello")
        self.assertEqual(text(1), text(1))
        self.assertNotEqual(text(1), text(2))

    def test_stop_string(self):
        whole = self.good("run", "-m", self.model, "--greedy", "--max", "20", "--raw", "Hello").rstrip("\n")
        stop = whole[4:7]
        cut = self.good("run", "-m", self.model, "--greedy", "--max", "20", "--raw", "--stop", stop, "Hello")
        self.assertEqual(cut, whole[:whole.index(stop)] + "\n")

    def test_lines_are_a_chat(self):
        done = bezel("run", "-m", self.model, "--greedy", "--max", "8", "-v", stdin="hello\n\nand then\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        turns = done.stderr.decode().splitlines()
        self.assertEqual(len(turns), 2)
        self.assertIn("(0 re-used)", turns[0])
        self.assertNotIn("(0 re-used)", turns[1])
        alone = self.good("run", "-m", self.model, "--greedy", "--max", "8", "hello")
        self.assertTrue(done.stdout.decode().startswith(alone))
        self.assertEqual(self.good("run", "-m", self.model), "")  # no lines, no answers

    def test_saved_session(self):
        saved = self.path / "x.session"
        words = ("run", "-m", self.model, "--greedy", "--max", "8", "--raw", "Hello, who are you?")
        first = self.good(*words, "--save-session", saved)
        again = bezel(*words, "-v", "--load-session", saved)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(again.stdout.decode(), first)
        self.assertNotIn(b"(0 re-used)", again.stderr)
        self.assertIn("saved from another model", self.bad("run", "-m", TINY, "--raw", "x", "--load-session", saved))
        self.assertIn("not a saved session", self.bad(*words, "--load-session", self.model))
        saved.write_bytes(saved.read_bytes()[:-1] + b"?")
        self.assertIn("checksum", self.bad(*words, "--load-session", saved))
        self.bad(*words, "--load-session", self.path / "missing")
        self.bad(*words, "--save-session", self.path / "no" / "folder")

    def test_prompt_too_long(self):
        self.assertIn("16", self.bad("run", "-m", self.model, "--context", "16", "word " * 100))

    def test_interrupt(self):
        process = subprocess.Popen(
            # The seed of a long answer: others end before they could be stopped.
            command("run", "-m", self.model, "--raw", "--temperature", "3", "--top-k", "0", "--top-p", "1", "--seed", "9",
                    "Hello"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        start = process.stdout.read1(1)
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        rest, message = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 130)
        self.assertEqual(message, b"bezel: The answer was stopped.\n")
        text = (start + rest).decode()  # whole characters only
        self.assertTrue(text.endswith("\n"))

    def test_closed_output(self):
        process = subprocess.Popen(command("run", "-m", self.model, "--raw", "--max", "50", "Hello"),
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        process.stdout.close()
        self.assertIn(process.wait(timeout=20), (0, 1, -signal.SIGPIPE))


class Ollama(CommandLine):
    def setUp(self):
        self.store = self.path / "store"
        self.env = {"OLLAMA_MODELS": str(self.store)}
        (self.store / "blobs").mkdir(parents=True, exist_ok=True)

    def blob(self, kind, content):
        digest = hashlib.sha256(content).hexdigest()
        (self.store / "blobs" / f"sha256-{digest}").write_bytes(content)
        return {"mediaType": kind, "digest": f"sha256:{digest}", "size": len(content)}

    def add(self, name, tag, layers):
        config = self.blob("application/vnd.docker.container.image.v1+json",
                           json.dumps({"model_format": "gguf", "model_family": "gemma4"}).encode())
        manifest = self.store / "manifests/registry.ollama.ai/library" / name / tag
        manifest.parent.mkdir(parents=True, exist_ok=True)
        manifest.write_text(json.dumps({"schemaVersion": 2, "config": config, "layers": layers}))
        return manifest

    def model_layer(self):
        return self.blob("application/vnd.ollama.image.model", self.model.read_bytes())

    def test_by_name(self):
        self.add("tinygemma", "q8", [self.model_layer()])
        self.assertIn("synthetic tiny", self.good("inspect", "tinygemma:q8", env=self.env))
        text = self.good("run", "-m", "tinygemma:q8", "--greedy", "--max", "5", "hi", env=self.env)
        self.assertEqual(text, self.good("run", "-m", self.model, "--greedy", "--max", "5", "hi"))

    def test_verify(self):
        layer = self.model_layer()
        self.add("checked", "latest", [layer])
        self.assertIn("synthetic tiny", self.good("inspect", "checked", "--verify", env=self.env))
        blob = self.store / "blobs" / layer["digest"].replace(":", "-")
        content = bytearray(blob.read_bytes())
        content[-100] ^= 1  # one bit of a weight
        blob.write_bytes(content)
        self.good("inspect", "checked", env=self.env)
        self.assertIn(layer["digest"][7:], self.bad("inspect", "checked", "--verify", env=self.env))
        self.assertIn("no digest", self.bad("inspect", self.model, "--verify"))
        blob.unlink()

    def test_not_there(self):
        self.assertIn("nothere", self.bad("inspect", "nothere:q8", env=self.env))
        missing = {"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:" + "0" * 64, "size": 5}
        self.add("gone", "latest", [missing])
        self.bad("inspect", "gone", env=self.env)

    def test_broken_manifest(self):
        manifest = self.add("broken", "latest", [])
        self.bad("inspect", "broken", env=self.env)
        for content in ("", "{", "[]", "null", '{"layers": 5}', '{"layers": [{"digest": "../../etc/passwd"}]}'):
            manifest.write_text(content)
            with self.subTest(content):
                self.bad("inspect", "broken", env=self.env)


class BrokenFiles(CommandLine):
    """Whatever is in a file: an error, not a crash, and no more memory than limit_memory() grants."""

    def never_crashes(self, path):
        done = bezel("run", "-m", path, "--raw", "--greedy", "--max", "2", "hi")
        self.assertIn(done.returncode, (0, 1), (path, done.stderr[-2000:]))
        if done.returncode == 1:
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)
        return done.returncode

    def test_empty_and_foreign(self):
        for content in (b"", b"G", b"GGUF", b"PK\3\4" + b"\0" * 100, b"\0" * 4096, b"not a model\n" * 50,
                        os.urandom(10000)):
            path = self.file("foreign.gguf", content)
            with self.subTest(content[:8]):
                for command in (("inspect", path), ("run", "-m", path, "hi"), ("tokenize", path, "hi"),
                                ("eval", path, "--ids", "2")):
                    self.assertIn("foreign.gguf", self.bad(*command))

    def test_truncated(self):
        whole = Path(TINY).read_bytes()
        for size in [*range(0, 64, 7), *range(64, len(whole), len(whole) // 40), len(whole) - 33]:
            with self.subTest(size):
                self.bad("inspect", self.file("cut.gguf", whole[:size]))

    def test_flipped_bits(self):
        whole = Path(TINY).read_bytes()
        header = whole.index(b"tokenizer.ggml.tokens")
        source = random.Random(4)
        failures = 0
        for _ in range(120):
            flipped = bytearray(whole)
            for _ in range(source.choice((1, 1, 4))):
                flipped[source.randrange(header)] ^= 1 << source.randrange(8)
            failures += self.never_crashes(self.file("flipped.gguf", bytes(flipped)))
        self.assertGreater(failures, 20)  # most of these bytes matter

    def test_absurd_counts(self):
        huge = 1 << 62
        big = [(b"general.architecture", 8, b"gemma4"), (b"gemma4.block_count", 4, 0xFFFFFFFF)]
        for content in (gguf([], counts=(huge, 0)), gguf([], counts=(0, huge)),
                        gguf(big, counts=(1 << 32, 2)), gguf(big),
                        gguf(big, [(b"token_embd.weight", (1 << 20, 1 << 20), 0, 0)]),
                        gguf(big, [(b"token_embd.weight", (1 << 40, 1 << 40), 0, 0)]),
                        gguf(big, [(b"token_embd.weight", (256, 4), 0, huge)]),
                        gguf(big, [(b"token_embd.weight", (0, 4), 0, 0)]),
                        gguf(big, [(b"token_embd.weight", (32, 1), 9999, 0)])):
            path = self.file("absurd.gguf", content)
            with self.subTest(content[:64]):
                self.bad("inspect", path)
                self.bad("run", "-m", path, "hi")

    def test_numbers_that_are_none(self):
        whole = Path(TINY).read_bytes()
        listing = json.loads(self.good("inspect", TINY, "--json", "--tensors"))["tensor_list"]
        data = len(whole) - sum(-(-t["bytes"] // 32) * 32 for t in listing)
        places, at = {}, data
        for t in listing:
            places[t["name"]] = (at, t["bytes"])
            at += -(-t["bytes"] // 32) * 32
        for name in ("blk.0.attn_norm.weight", "output_norm.weight", "blk.1.ffn_down.weight",
                     "token_embd.weight"):
            start, size = places[name]
            for value in (float("nan"), float("inf"), float("-inf")):
                with self.subTest((name, value)):
                    patched = whole[:start] + struct.pack("<f", value) * (size // 4) + whole[start + size:]
                    path = self.file("nan.gguf", patched)
                    message = self.bad("run", "-m", path, "--greedy", "--max", "4", "--raw", "hi")
                    self.assertIn("is not a number; the model's weights may be damaged", message)
                    self.bad("run", "-m", path, "--max", "4", "--raw", "hi")


if __name__ == "__main__":
    unittest.main()
