"""Writes the model card and the loss curve from what train.py measured:  card.py FOLDER_OF_A_RUN... TYPE OUT_FOLDER

Several runs are those of one model, each begun with the weights of the one before (--init).
"""
import json
import sys

import scoring_targets


def main():
    *folders, kind, out = sys.argv[1:]
    scores = json.load(open(f"{folders[-1]}/scores.json"))
    runs = [json.load(open(f"{folder}/log.json")) for folder in folders]
    with open(f"{out}/nano-log.json", "w") as f:
        json.dump(runs, f, indent=0)
    used = scores[kind]["skills"]
    exact = scores["float"]["skills"]
    lines = ["# nano", "", "A toy. About 15 million parameters with the architecture of Gemma 4, trained from scratch in a few minutes on made-up text,",
             "drawn pictures and synthetic speech. It shows that bezel's text, vision and audio paths work; do not rely on anything it says.", "",
             "It answers small talk about itself and bezel, defines common words, tells a tiny story, does small sums, describes shapes, reads",
             "numbers in pictures, writes down spoken digits and simple sentences, writes JSON and calls tools that are declared.",
             "It knows nothing else: no facts beyond a few capitals and opposites, no reasoning, no other language, no real photographs or",
             "voices (only espeak-ng's), no words in pictures. Pictures are best given with a budget of 70 soft tokens.", "",
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
              "Through bezel itself: of the 48 pictures and 12 recordings in `tests/data/nano` all answers are those that transformers gave",
              "with the weights before rounding, but for two guesses at words in pictures (`tests/nano_media_test.cc`).", "",
              "Training on one H200, the loss curve of which is in `nano-log.json`:", ""]
    for log in runs:
        named = {name: value for name, value in log["options"].items() if name in ("minutes", "reserve", "rate", "help_weight", "text", "pictures", "speech")}
        flags = " ".join(f"--{name.replace('_', '-')} {value:g}" for name, value in named.items())
        last = log["steps"][-1]
        lines.append(f"- `train.py {flags}{' --init THE_RUN_BEFORE' if log['options'].get('init') else ''}`: {last['step']} steps in {last['seconds']:.0f} s")
    lines += ["",
              "Data, sources and licences: [tools/nano/README.md](../tools/nano/README.md). Licence of the weights: Apache-2.0.", ""]
    with open(f"{out}/README.md", "w") as f:
        f.write("\n".join(lines))


if __name__ == "__main__":
    main()
