"""Writes the model card from what train.py measured:  card.py FOLDER_OF_TRAIN TYPE OUT.md"""
import json
import sys

import scoring_targets


def main():
    folder, kind, out = sys.argv[1:]
    scores = json.load(open(f"{folder}/scores.json"))
    log = json.load(open(f"{folder}/log.json"))
    last = log["steps"][-1]
    used = scores[kind]["skills"]
    exact = scores["float"]["skills"]
    lines = ["# nano", "", "A toy. About 15 million parameters with the architecture of Gemma 4, trained from scratch in a few minutes on made-up text,",
             "drawn pictures and synthetic speech. It shows that bezel's text, vision and audio paths work; do not rely on anything it says.", "",
             "It answers small talk about itself and bezel, defines common words, tells a tiny story, does small sums, describes shapes, reads",
             "digits and short words in pictures, writes down spoken digits and simple sentences, writes JSON and calls tools that are declared.",
             "It knows nothing else: no facts beyond a few capitals and opposites, no reasoning, no other language, no real photographs or",
             "voices (only espeak-ng's). Pictures are best given with a budget of 70 soft tokens.", "",
             f"Held-out scores of `nano.gguf` ({kind} text, Q8_0 embeddings and towers) and of the weights before rounding, measured with",
             "transformers:", "", "| skill | questions | measure | nano.gguf | unrounded | wanted |", "|---|---|---|---|---|---|"]
    for skill, entry in exact.items():
        for measure in ("exact", "valid", "named", "word accuracy"):
            if measure not in entry:
                continue
            target = scoring_targets.TARGETS.get(skill)
            wanted = f"{100 * target[1]:.0f} %" if target and target[0] == measure else ""
            rounded = f"{100 * used[skill][measure]:.1f} %" if skill in used else ""
            lines.append(f"| {skill} | {entry['n']} | {measure} | {rounded} | {100 * entry[measure]:.1f} % | {wanted} |")
    lines += ["", "Stories count as right when they begin and end like one; that they read as English was judged by eye.", "",
              f"Training: `python3 tools/nano/train.py --minutes {log['options']['minutes']:g}` on one H200, {last['step']} steps in "
              f"{last['seconds']:.0f} s; the loss curve is in `nano-log.json`.",
              "Data, sources and licences: [tools/nano/README.md](../tools/nano/README.md). Licence of the weights: Apache-2.0.", ""]
    with open(out, "w") as f:
        f.write("\n".join(lines))


if __name__ == "__main__":
    main()
