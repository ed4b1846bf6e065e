"""Conversations as token rows, in Gemma 4's small chat format. Text that a person wrote is never read as a marker."""
import json
from dataclasses import dataclass, field


class Special(str):
    """A control token, spelled as in the vocabulary."""


BOS, EOS = Special("<bos>"), Special("<eos>")
TURN, TURN_END = Special("<|turn>"), Special("<turn|>")
TOOL, TOOL_END = Special("<|tool>"), Special("<tool|>")
CALL, CALL_END = Special("<|tool_call>"), Special("<tool_call|>")
RESPONSE, RESPONSE_END = Special("<|tool_response>"), Special("<tool_response|>")
QUOTE = Special('<|"|>')
IMAGE_BEGIN, IMAGE, IMAGE_END = Special("<|image>"), Special("<|image|>"), Special("<image|>")
AUDIO_BEGIN, AUDIO, AUDIO_END = Special("<|audio>"), Special("<|audio|>"), Special("<audio|>")


@dataclass
class Exchange:
    """A question and its answer, with what was declared before and what a tool said in between."""
    skill: str
    user: list
    answer: list
    system: str | None = None
    tools: list = field(default_factory=list)
    result: str | None = None  # what the tool returned; the answer is then the call
    final: str | None = None   # what the model says about it
    check: str = "exact"


def quoted(text):
    return [QUOTE, text, QUOTE]


def joined(lists):
    out = []
    for i, items in enumerate(lists):
        if i:
            out.append(",")
        out += items
    return out


def value_items(value):
    if isinstance(value, bool) or value is None:
        return [{True: "true", False: "false", None: "null"}[value]]
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, list):
        return ["["] + joined([value_items(v) for v in value]) + ["]"]
    if isinstance(value, dict):
        return ["{"] + joined([[f"{k}:"] + value_items(value[k]) for k in sorted(value)]) + ["}"]
    return [json.dumps(value)]


def property_items(schema):
    fields = []
    kind = schema["type"].upper()
    if "description" in schema:
        fields.append(["description:"] + quoted(schema["description"]))
    if kind == "STRING" and "enum" in schema:
        fields.append(["enum:["] + joined([quoted(v) for v in schema["enum"]]) + ["]"])
    fields.append(["type:"] + quoted(kind))
    return ["{"] + joined(fields) + ["}"]


def declaration(tool):
    """`tool` is the `function` object of an OpenAI tool whose parameters are plain scalars."""
    out = [TOOL, f"declaration:{tool['name']}{{description:"] + quoted(tool["description"])
    parameters = tool.get("parameters")
    if parameters:
        out.append(",parameters:{")
        properties = parameters.get("properties", {})
        if properties:
            out.append("properties:{")
            out += joined([[f"{name}:"] + property_items(properties[name]) for name in sorted(properties)])
            out.append("},")
        if parameters.get("required"):
            out += ["required:["] + joined([quoted(v) for v in parameters["required"]]) + ["],"]
        out += ["type:"] + quoted("OBJECT") + ["}"]
    return out + ["}", TOOL_END]


def call(name, arguments):
    return [CALL, f"call:{name}"] + value_items(arguments) + [CALL_END]


def opening(exchange):
    """<bos> and the system turn, where there is one."""
    items = [BOS]
    if exchange.system is not None or exchange.tools:
        items += [TURN, "system\n", (exchange.system or "").strip()]
        for tool in exchange.tools:
            items += declaration(tool)
        items += [TURN_END, "\n"]
    return items


def question(exchange):
    return [TURN, "user\n"] + exchange.user + [TURN_END, "\n", TURN, "model\n"]


def parts(exchange):
    """(items, learnt) pairs after the opening: what the model reads and what it should write."""
    out = [(question(exchange), False)]
    if exchange.result is None:
        return out + [(exchange.answer + [TURN_END], True), (["\n"], False)]
    name = next(a for a in exchange.answer if a.startswith("call:"))[5:].split("{")[0]
    out.append((exchange.answer + [RESPONSE], True))
    out.append(([f"response:{name}{{value:"] + quoted(exchange.result) + ["}", RESPONSE_END], False))
    return out + [([exchange.final, TURN_END], True), (["\n"], False)]


def text_of(items):
    return "".join(items)


class Row:
    """A conversation being written: ids, and which of them the model has to learn to write."""

    def __init__(self, encoder, limit):
        self.encoder, self.limit = encoder, limit
        self.ids, self.learnt = [], []
        self.soft = None  # position and count of an image's or a clip's soft tokens

    def encode(self, items):
        ids, text = [], ""
        for item in items:
            if isinstance(item, Special):
                if text:
                    ids += self.encoder.encode(text)
                    text = ""
                ids.append(self.encoder.special[item])
            else:
                text += item
        return ids + (self.encoder.encode(text) if text else [])

    def add(self, exchange):
        """False, and nothing added, when it does not fit."""
        ids, learnt = [], []
        # The opening comes once; a later exchange with tools or a system message cannot follow.
        if not self.ids:
            ids += self.encode(opening(exchange))
            learnt += [0] * len(ids)
        elif exchange.tools or exchange.system is not None:
            return False
        for items, wanted in parts(exchange):
            new = self.encode(items)
            ids += new
            learnt += [int(wanted)] * len(new)
        if len(self.ids) + len(ids) > self.limit:
            return False
        self.ids += ids
        self.learnt += learnt
        return True

    def find_soft(self, special):
        token = self.encoder.special[special]
        self.soft = (self.ids.index(token), self.ids.count(token)) if token in self.ids else None
        return self.soft


def media(begin, soft, end, count):
    return [begin] + [soft] * count + [end]
