"""What the pictures show and the clips say, with questions and answers; how they are drawn and spoken is elsewhere."""
import random

from facts import CITIES, NAMES, THINGS
from skills import WORD_LIST, a, invented, is_held_out, listed

SHAPES = ["circle", "square", "triangle", "rectangle", "star", "cross", "ring", "diamond"]
COLOURS = {"red": (220, 30, 30), "green": (30, 150, 50), "blue": (40, 70, 220), "yellow": (250, 225, 40), "orange": (250, 140, 20),
           "purple": (130, 40, 170), "pink": (255, 150, 200), "brown": (120, 70, 30), "black": (15, 15, 15),
           "white": (250, 250, 250), "grey": (140, 140, 140)}
COLOUR_LIST = list(COLOURS)
BACKGROUNDS = ["white", "black", "grey", "yellow", "blue", "green", "pink", "white", "white"]
# Too alike to tell apart on each other.
CLOSE = {("yellow", "white"), ("pink", "white"), ("orange", "yellow"), ("brown", "black"), ("purple", "blue"), ("red", "orange"),
         ("red", "brown"), ("pink", "grey"), ("purple", "black"), ("green", "grey"), ("blue", "black"), ("red", "pink")}
GLYPHS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
FONT_COUNT = 9
MAX_SHAPES, MAX_GLYPHS = 4, 6
# A picture as numbers: background; shapes of 8 (kind, x, y, radius, turn, colour); text (font, count, x, y, height, colour, glyphs); noise.
SHAPE_AT, TEXT_AT = 3, 3 + 8 * MAX_SHAPES
NOISE_AT = TEXT_AT + 8 + MAX_GLYPHS
SPEC_SIZE = NOISE_AT + 1

COUNT_WORDS = ["no", "one", "two", "three", "four"]
DIGIT_WORDS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
SHORT_WORDS = sorted({w for w in list(THINGS) + WORD_LIST[:1200] if 2 < len(w) <= MAX_GLYPHS and " " not in w})


def differ(one, other):
    return one != other and (one, other) not in CLOSE and (other, one) not in CLOSE


def jitter(rng, colour):
    return [min(255, max(0, c + rng.randint(-10, 10))) / 255 for c in COLOURS[colour]]


def region(x, y):
    column, row = min(2, int(x * 3)), min(2, int(y * 3))
    if (column, row) == (1, 1):
        return "in the centre"
    words = [["top", "", "bottom"][row], ["left", "", "right"][column]]
    place = " ".join(w for w in words if w)
    return f"at the {place}" if row != 1 and column == 1 else f"on the {place}" if row == 1 else f"in the {place}"


def draw_shapes(rng):
    count = rng.choice([1, 1, 1, 2, 2, 3, 4])
    ground = rng.choice(BACKGROUNDS)
    fits = [c for c in COLOUR_LIST if differ(c, ground)]
    things = [(rng.choice(SHAPES), rng.choice(fits)) for _ in range(count)]
    if count == 1:
        spots = [(rng.uniform(0.2, 0.8), rng.uniform(0.2, 0.8))] if rng.random() < 0.6 else [(0.5, 0.5)]
        radii = [rng.uniform(0.14, 0.2) if spots[0] != (0.5, 0.5) else rng.uniform(0.15, 0.42)]
    elif count == 2:
        near = rng.uniform(-0.06, 0.06)
        spots = [(0.27, 0.5 + near), (0.73, 0.5 - near)] if rng.random() < 0.6 else [(0.5 + near, 0.27), (0.5 - near, 0.73)]
        radii = [rng.uniform(0.12, 0.19) for _ in spots]
    else:
        cells = [(0.27, 0.27), (0.73, 0.27), (0.27, 0.73), (0.73, 0.73)] if rng.random() < 0.7 or count == 4 else [
            (0.2, 0.5), (0.5, 0.5), (0.8, 0.5)]
        spots = sorted(rng.sample(cells, count), key=cells.index)
        radii = [rng.uniform(0.09, 0.13 if cells[0][0] == 0.2 else 0.18) for _ in spots]
        spots = [(x + rng.uniform(-0.04, 0.04), y + rng.uniform(-0.04, 0.04)) for x, y in spots]
    return {"kind": "shapes", "ground": ground, "things": things, "spots": spots, "radii": radii}


def draw_text(rng, number=None):
    if number is None:
        number = rng.random() < 0.6
    if number:
        text = str(rng.randrange(10 ** rng.choice([1, 2, 2, 3, 3, 4])))
    else:
        text = rng.choice(SHORT_WORDS) if rng.random() < 0.7 else invented(rng)[:MAX_GLYPHS]
        text = rng.choice([text, text.upper(), text.capitalize()])
    ground = rng.choice(BACKGROUNDS)
    colour = rng.choice([c for c in COLOUR_LIST if differ(c, ground)])
    # Heights leave room for the widest glyphs of the widest font.
    top = min(0.62, 1.15 / len(text))
    height = rng.uniform(max(0.2, top * 0.6), top)
    return {"kind": "number" if number else "word", "ground": ground, "colour": colour, "text": text, "font": rng.randrange(FONT_COUNT),
            "height": height, "x": rng.random(), "y": rng.random()}


def picture_key(spec):
    if spec["kind"] == "shapes":
        return ("picture", spec["ground"], tuple(spec["things"]))
    if spec["kind"] == "number" and len(spec["text"]) < 2:  # single digits are known, their looks can be new
        return ("picture", spec["text"], spec["font"], spec["ground"], spec["colour"])
    return ("picture", spec["text"].lower())


def picture(rng, held=False, kind=None):
    while True:
        wanted = kind or rng.choices(["shapes", "number", "word"], [4, 5, 2])[0]
        spec = draw_shapes(rng) if wanted == "shapes" else draw_text(rng, wanted == "number")
        if is_held_out(*picture_key(spec)) == held:
            return spec


def numbers_of(rng, spec):
    out = [0.0] * SPEC_SIZE
    out[0:3] = jitter(rng, spec["ground"])
    for slot in range(MAX_SHAPES):
        out[SHAPE_AT + 8 * slot] = -1
    out[TEXT_AT] = -1
    if spec["kind"] == "shapes":
        for slot, ((shape, colour), (x, y), radius) in enumerate(zip(spec["things"], spec["spots"], spec["radii"])):
            turn = rng.uniform(-0.25, 0.25) if shape not in ("square", "rectangle", "diamond", "cross") else rng.uniform(-0.1, 0.1)
            out[SHAPE_AT + 8 * slot : SHAPE_AT + 8 * slot + 8] = [SHAPES.index(shape), x, y, radius, turn] + jitter(rng, colour)
    else:
        glyphs = [GLYPHS.index(c) for c in spec["text"]]
        out[TEXT_AT : TEXT_AT + 8] = [spec["font"], len(glyphs), spec["x"], spec["y"], spec["height"]] + jitter(rng, spec["colour"])
        out[TEXT_AT + 8 : TEXT_AT + 8 + len(glyphs)] = glyphs
    out[NOISE_AT] = rng.choice([0, 0, 0, rng.uniform(0, 0.05)])
    return out


def caption(spec):
    if spec["kind"] != "shapes":
        return f"The {spec['kind']} {spec['text'].lower()} in {spec['colour']} on a {spec['ground']} background."
    names = [a(f"{colour} {shape}") for shape, colour in spec["things"]]
    ground = f"on a {spec['ground']} background"
    if len(names) == 1:
        return f"{names[0].capitalize()} {ground}."
    if len(names) == 2:
        beside = abs(spec["spots"][0][0] - spec["spots"][1][0]) > abs(spec["spots"][0][1] - spec["spots"][1][1])
        return f"{names[0].capitalize()} {'to the left of' if beside else 'above'} {names[1]} {ground}."
    return f"{COUNT_WORDS[len(names)].capitalize()} shapes {ground}: {listed(names)}."


DESCRIBE = ["", "", "Describe the picture.", "What is in the picture?", "What do you see?", "What is this?", "Describe this image.",
            "What is shown in this image?", "What can you see?", "Describe what you see.", "What is in this image?", "Caption this."]


def picture_questions(rng, spec, skill=None):
    """Pairs of question and answer; the first of them is the one to score."""
    out = [(rng.choice(DESCRIBE), caption(spec))]
    ground = (rng.choice(["What colour is the background?", "What is the background colour?"]), f"The background is {spec['ground']}.")
    if spec["kind"] != "shapes":
        kind, text = spec["kind"], spec["text"].lower()
        read = (rng.choice([f"What {kind} is in the picture?", f"Which {kind} do you see?", f"What {kind} is this?", "Read the text.", "What does it say?",
                            f"Read the {kind}."]), f"The {kind} is {text}.")
        colour = (f"What colour is the {kind}?", f"The {kind} is {spec['colour']}.")
        return [read] + rng.sample([out[0], colour, ground], 2) if skill or rng.random() < 0.6 else [out[0], read, rng.choice([colour, ground])]
    things, count = spec["things"], len(spec["things"])
    more = [ground, (rng.choice(["How many shapes are there?", "How many shapes do you see?", "Count the shapes."]),
                     f"There {'is' if count == 1 else 'are'} {count} shape{'s' if count > 1 else ''}.")]
    shapes = [s for s, _ in things]
    colours = [c for _, c in things]
    for (shape, colour), (x, y) in zip(things, spec["spots"]):
        if shapes.count(shape) == 1:
            more.append((rng.choice([f"What colour is the {shape}?", f"Which colour does the {shape} have?"]), f"The {shape} is {colour}."))
            if abs(x * 3 - round(x * 3)) > 0.12 and abs(y * 3 - round(y * 3)) > 0.12:
                more.append((f"Where is the {shape}?", f"The {shape} is {region(x, y)}."))
        if colours.count(colour) == 1:
            more.append((rng.choice([f"What is {colour}?", f"Which shape is {colour}?"]), f"The {shape} is {colour}."))
    asked = rng.choice(SHAPES)
    n = shapes.count(asked)
    more.append((f"Is there {a(asked)}?", "Yes." if n else "No."))
    if count > 1:
        more.append((f"How many {asked}{'e' if asked.endswith('ss') else ''}s are there?", f"There {'is' if n == 1 else 'are'} {n or 'no'} {asked}{'' if n == 1 else 'es' if asked.endswith('ss') else 's'}."))
    if skill:
        return out + more
    rng.shuffle(more)
    pairs = out + more[:3]
    if rng.random() < 0.5:
        rng.shuffle(pairs)
    return pairs[: rng.randint(2, 4)]


SUBJECTS = ["the cat", "the dog", "a bird", "my friend", "the teacher", "a small mouse", "the old man", "the girl", "the boy", "our doctor", "the king", "a horse"]
VERBS = ["sees", "likes", "wants", "finds", "eats", "brings", "buys", "has", "needs", "carries"]
WHATS = ["a red ball", "the blue hat", "an apple", "some bread", "the key", "a green book", "a cup of tea", "the letter", "a yellow flower", "fresh milk",
         "a new car", "the white house", "two eggs", "three stones", "a box"]
WHERES = ["in the garden", "at home", "in the kitchen", "near the river", "on the table", "under the tree", "in the morning", "at night", "every day", "at school"]
COMMANDS = ["turn on the light", "turn off the light", "open the door", "close the window", "tell me a story", "what is your name", "how are you", "good morning",
            "good night", "thank you", "hello", "stop", "start", "yes", "no", "help", "go left", "go right", "what time is it", "play some music", "read the letter",
            "come here", "wait a minute", "see you soon", "what is this", "where is the cat", "I am tired", "I am hungry"]


def sentence(rng):
    kind = rng.randrange(7)
    if kind == 0:
        return rng.choice(COMMANDS).lower()
    if kind == 1:
        return f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(WHATS)}"
    if kind == 2:
        return f"{rng.choice(SUBJECTS)} is {rng.choice(WHERES)}"
    if kind == 3:
        return f"{rng.choice(SUBJECTS)} {rng.choice(VERBS)} {rng.choice(WHATS)} {rng.choice(WHERES)}"
    if kind == 4:
        return rng.choice([f"turn {rng.choice(['on', 'off'])} the light in the {rng.choice(['kitchen', 'garden', 'hall', 'bedroom'])}",
                           f"set a timer for {rng.choice(DIGIT_WORDS[1:])} minutes", f"what is the weather in {rng.choice(CITIES[:16]).lower()}",
                           f"call {rng.choice(NAMES[:24]).lower()}", f"the {rng.choice(SHAPES)} is {rng.choice(COLOUR_LIST)}"])
    if kind == 5:
        return rng.choice(SPOKEN_WORDS)
    return " ".join(rng.choice(SPOKEN_WORDS) for _ in range(rng.randint(2, 3)))


SPOKEN_WORDS = sorted({w for text in SUBJECTS + VERBS + WHATS + WHERES + COMMANDS for w in text.lower().split()} | set(SHAPES) | set(COLOUR_LIST) |
                      {"sun", "moon", "water", "fire", "mother", "father", "sister", "brother", "music", "computer", "picture", "monday", "friday", "sunday",
                       "winter", "summer", "happy", "little", "big", "train", "city", "school", "number", "word"} - {"a", "i", "an"})


def digits(rng):
    return " ".join(str(rng.randrange(10)) for _ in range(rng.choice([1, 2, 3, 3, 4, 4, 5, 6])))


def speech(rng, held=False, kind=None):
    """What is to be transcribed, and how it is to be spoken."""
    while True:
        wanted = kind or rng.choice(["digits", "words", "words"])
        text = digits(rng) if wanted == "digits" else sentence(rng)
        # One or two words are known; only longer utterances can be new.
        if is_held_out("speech", text) == held and (not held or len(text.split()) > 2):
            break
        if not held and len(text.split()) <= 2:
            break
    voice = rng.choice(VOICES)
    return {"kind": wanted, "text": text, "voice": voice, "speed": rng.randint(120, 185), "pitch": rng.randint(35, 65),
            "before": rng.uniform(0.02, 0.25), "after": rng.uniform(0.05, 0.3)}


VOICES = ["en-us", "en-us", "en", "en-gb-x-rp", "en-gb-scotland", "en-us+m1", "en-us+m3", "en-us+m7", "en+m2", "en-us+f1", "en-us+f2", "en+f3",
          "en-us+f4", "en+f5", "en-us+belinda", "en-us+linda", "en-us+michael", "en-us+steph"]
TRANSCRIBE = ["", "", "Transcribe the audio.", "Transcribe this.", "What is said?", "Write down what you hear.", "What do you hear?", "Transcribe this recording.",
              "What does the speaker say?", "Transcribe the following speech segment in English into English text."]
DIGITS_ASKED = ["Which digits do you hear?", "Which numbers do you hear?", "Write down the digits.", "What are the digits?"]


def speech_question(rng, clip):
    question = rng.choice(TRANSCRIBE + DIGITS_ASKED if clip["kind"] == "digits" else TRANSCRIBE)
    return question, clip["text"]


def spoken_form(clip):
    if clip["kind"] == "digits":
        return " ".join(DIGIT_WORDS[int(d)] for d in clip["text"].split())
    return clip["text"]


if __name__ == "__main__":
    rng = random.Random(3)
    for _ in range(6):
        print(picture_questions(rng, picture(rng)), speech(rng))
