"""Greedy answers to held-out questions, and what share of them is right."""
import json
import re

import torch

import media_data
from scoring_targets import TARGETS

# "red circle": a shape counts when it is named with its colour, in its place.
NAMED = re.compile(rf"({'|'.join(media_data.COLOURS)}) ({'|'.join(media_data.SHAPES)})")
STOPS = ("<eos>", "<turn|>", "<|tool_response>")
CALL = re.compile(r'<\|tool_call>call:([a-z_]+)\{((\w+:(<\|"\|>[^<]*<\|"\|>|-?[0-9.]+|true|false|null),?)*)\}<tool_call\|>')


@torch.no_grad()
def answer(nano, encoder, prompts, limit, image=None, audio=None):
    """prompts: lists of ids. image, audio: one tensor of soft tokens, n x d, for each prompt, or None."""
    device = next(nano.model.parameters()).device
    stops = torch.tensor([encoder.special[s] for s in STOPS], device=device)
    lengths = torch.tensor([len(p) for p in prompts], device=device)
    ids = torch.zeros((len(prompts), int(lengths.max()) + limit + 32), dtype=torch.long, device=device)
    for i, prompt in enumerate(prompts):
        ids[i, : len(prompt)] = torch.tensor(prompt, device=device)
    start = lengths.clone()
    live = torch.arange(len(prompts), device=device)
    for _ in range(limit):
        width = (int(lengths[live].max()) + 15) // 16 * 16
        chosen = live.tolist()
        hidden = nano.hidden(ids[live, :width], torch.cat([image[i] for i in chosen]) if image else None,
                             torch.cat([audio[i] for i in chosen]) if audio else None)
        best = nano.logits(hidden[torch.arange(len(chosen), device=device), lengths[live] - 1]).argmax(-1)
        going = ~(best[:, None] == stops).any(-1)
        live = live[going]
        if not len(live):
            break
        ids[live, lengths[live]] = best[going]
        lengths[live] += 1
    return [ids[i, start[i] : lengths[i]].tolist() for i in range(len(prompts))]


def distance(one, other):
    """Edits between two lists."""
    row = list(range(len(other) + 1))
    for i, x in enumerate(one, 1):
        last, row[0] = row[0], i
        for j, y in enumerate(other, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (x != y))
    return row[-1]


def is_json(text):
    try:
        json.loads(text)
        return True
    except ValueError:
        return False


def tally(items):
    """items: (skill, expected, check, given). Shares of what is right, by skill."""
    out = {}
    for skill, expected, check, given in items:
        entry = out.setdefault(skill, {"n": 0, "right": 0.0})
        entry["n"] += 1
        if check.startswith("one of:"):
            entry["right"] += given in json.loads(check[7:])
        elif check == "english":
            entry["right"] += given.startswith("Once upon a time") and given.rstrip().endswith(".") and len(given.split()) > 25
        elif check == "shapes":
            wanted, found = NAMED.findall(expected), NAMED.findall(given)
            entry["shapes"] = entry.get("shapes", 0) + len(wanted)
            entry["named"] = entry.get("named", 0) + sum(w == f for w, f in zip(wanted, found))
            entry["right"] += given == expected
        elif check == "words":
            wrong = distance(given.split(), expected.split())
            entry["words"] = entry.get("words", 0) + len(expected.split())
            entry["edits"] = entry.get("edits", 0) + wrong
            entry["right"] += given == expected
        else:
            entry["right"] += given == expected
            if check == "json":
                entry["valid"] = entry.get("valid", 0) + is_json(given)
            if check == "tool":
                entry["valid"] = entry.get("valid", 0) + bool(CALL.fullmatch(given))
    for entry in out.values():
        entry["exact"] = round(entry.pop("right") / entry["n"], 4)
        if "valid" in entry:
            entry["valid"] = round(entry["valid"] / entry["n"], 4)
        if "shapes" in entry:
            entry["named"] = round(entry["named"] / entry.pop("shapes"), 4)
        if "words" in entry:
            entry["word accuracy"] = round(1 - entry.pop("edits") / entry.pop("words"), 4)
    return out



def table(scores):
    lines = []
    for skill, entry in scores.items():
        parts = [f"{key} {100 * entry[key]:.1f} %" for key in ("exact", "valid", "named", "word accuracy") if key in entry]
        measure, wanted = TARGETS.get(skill, (None, 0))
        mark = "" if measure is None else "  reached" if entry[measure] >= wanted else f"  WANTED {measure} {100 * wanted:.0f} %"
        lines.append(f"  {skill:26} n={entry['n']:<4} {', '.join(parts)}{mark}")
    return "\n".join(lines)

