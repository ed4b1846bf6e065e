#!/usr/bin/env python3
"""Checks of the nano model's data that need neither torch nor a GPU. Run from the repository's root. With the command-line
program built and a nano.gguf given (nano_test.py NANO.gguf), our encoder is compared with the engine's as well."""
import json
import random
import subprocess
import sys
import unittest

import chat
import media_data
import skills
import vocab

MODEL = sys.argv.pop() if len(sys.argv) > 1 and sys.argv[-1].endswith(".gguf") else None
BEZEL = "build/native/bezel"


def rendered(case):
    """The prompt of a simple case of tests/data/chat.json, by chat.py."""
    messages = list(case["messages"])
    system = messages.pop(0)["content"] if messages[0]["role"] == "system" else None
    exchange = chat.Exchange("", [messages[-1]["content"].strip()], [""], system=system,
                             tools=[t["function"] for t in case.get("tools", [])])
    return chat.text_of(chat.opening(exchange) + chat.question(exchange))


class NanoTest(unittest.TestCase):
    def setUp(self):
        self.encoder = vocab.load()

    def test_vocabulary(self):
        pieces = self.encoder.pieces
        self.assertEqual(len(pieces), vocab.SIZE)
        self.assertEqual(len(set(pieces)), vocab.SIZE)
        self.assertEqual(pieces[: len(vocab.SPECIALS)], vocab.SPECIALS)
        self.assertFalse([p for p in pieces if sum(c.isdigit() for c in p) > 1 and not p.startswith("<")])

    def test_text_survives(self):
        rng = random.Random(1)
        for _ in range(300):
            text = "".join(t for t in skills.any_exchange(rng).answer if type(t) is str)
            self.assertEqual(self.encoder.decode(self.encoder.encode(text)), text)
        odd = "na\u00efve \U0001f999\t\n\n  x\u00df 12345"
        self.assertEqual(self.encoder.decode(self.encoder.encode(odd)), odd)

    def test_prompts_equal_the_published_template(self):
        with open("tests/data/chat.json") as f:
            cases = {case["case"]: case for case in json.load(f)["cases"]}
        for name in ("A user only", "B system+user", "S user trimmed", "X tool without parameters", "Q empty system"):
            self.assertEqual(rendered(cases[name]["input"]), cases[name]["small"], name)
        # Declarations with described, listed and required parameters: the parts of this case that are scalars.
        case = cases["F tools"]
        function = case["input"]["tools"][0]["function"]
        for name, schema in function["parameters"]["properties"].items():
            if schema["type"] in ("string",):
                self.assertIn(chat.text_of([f"{name}:"] + chat.property_items(schema)), case["small"])
        case = cases["G tool call pending answer"]
        call = case["input"]["messages"][1]["tool_calls"][0]["function"]
        arguments = call["arguments"] if isinstance(call["arguments"], dict) else json.loads(call["arguments"])
        self.assertIn(chat.text_of(chat.call(call["name"], arguments)), case["small"])

    def test_a_tool_round_is_laid_out_as_the_template_does(self):
        exchange = chat.Exchange("tools", ["W?"], chat.call("f", {"b": 1}), result="ok", final="Done.")
        text = "".join(chat.text_of(items) for items, _ in chat.parts(exchange))
        self.assertEqual(text, "<|turn>user\nW?<turn|>\n<|turn>model\n<|tool_call>call:f{b:1}<tool_call|><|tool_response>"
                               'response:f{value:<|"|>ok<|"|>}<tool_response|>Done.<turn|>\n')

    def test_held_out_questions_are_not_in_training(self):
        held, rng = set(), random.Random(2)
        for name in ("sums", "json", "tools", "units", "word problems", "definitions"):
            for _ in range(150):
                exchange = skills.SCORED[name](rng, True)
                held.add((name, chat.text_of(exchange.user), chat.text_of(exchange.answer)))
        for _ in range(20000):
            exchange = skills.any_exchange(rng)
            self.assertNotIn((exchange.skill, chat.text_of(exchange.user), chat.text_of(exchange.answer)), held)

    def test_pictures_and_speech_are_held_out_too(self):
        rng = random.Random(3)
        for _ in range(300):
            self.assertFalse(skills.is_held_out(*media_data.picture_key(media_data.picture(rng))))
            self.assertTrue(skills.is_held_out(*media_data.picture_key(media_data.picture(rng, True))))
            self.assertTrue(skills.is_held_out("speech", media_data.speech(rng, True)["text"]))
            self.assertEqual(len(media_data.numbers_of(rng, media_data.picture(rng))), media_data.SPEC_SIZE)

    def test_sums_are_right(self):
        rng = random.Random(4)
        for _ in range(500):
            left, right = chat.text_of(skills.sums(rng).answer).split(" = ")
            self.assertEqual(eval(left), int(right))  # our own text: two numbers and a sign

    @unittest.skipIf(MODEL is None, "no model given")
    def test_the_engine_encodes_alike(self):
        rng = random.Random(5)
        lines = []
        for _ in range(400):
            exchange = skills.any_exchange(rng)
            row = chat.Row(self.encoder, 4096)
            row.add(exchange)
            lines.append((chat.text_of(chat.opening(exchange)) + "".join(chat.text_of(i) for i, _ in chat.parts(exchange)), row.ids))
        plain = "Odd  spacing,\ttabs\n\n\nand na\u00efve \U0001f999 text 3.14159 don't"
        for begin in range(0, len(lines), 50):
            part = lines[begin : begin + 50]
            out = subprocess.check_output([BEZEL, "tokenize", MODEL, "".join(t for t, _ in part), "--specials"], text=True)
            self.assertEqual([int(i) for i in out.split(",")], [i for _, ids in part for i in ids])
        out = subprocess.check_output([BEZEL, "tokenize", MODEL, plain], text=True)
        self.assertEqual([int(i) for i in out.split(",")], self.encoder.encode(plain))


if __name__ == "__main__":
    unittest.main()
