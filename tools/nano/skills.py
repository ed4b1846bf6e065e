"""Text exchanges for the nano model, made by grammars. Each skill draws from an endless or large set; a part of every
set, chosen by a hash of what is asked, is held out of training and used for scores only."""
import json
import os
import zlib

from chat import Exchange, call
from facts import (BEYOND, BEYOND_ANSWERS, CAPITALS, CITIES, NAMES, OPPOSITES, SELF, SOUNDS, THINGS)

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "words.json")) as f:
    _file = json.load(f)
WORDS, UNKNOWN_WORDS = _file["words"], _file["unknown"]


def is_held_out(*key):
    return zlib.crc32(repr(key).encode()) % 12 == 0


def until(rng, held, draw):
    """Draws until the key falls on the wanted side."""
    while True:
        key, made = draw(rng)
        if is_held_out(*key) == held:
            return made


def simple(skill, question, answer, check="exact"):
    return Exchange(skill, [question], [answer], check=check)


def listed(words):
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def invented(rng):
    """A word nobody knows, so that copying is learnt rather than words."""
    return "".join(rng.choice("bdfgklmnprstvz") + rng.choice("aeiou") for _ in range(rng.randint(2, 3))) + rng.choice(
        ["", "", "n", "r", "s", "x"])


def a(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def small_talk(rng, held=False):
    questions, answers = rng.choice(SELF)
    question = rng.choice(questions)
    if held:  # other wordings of what is in training
        question = rng.choice(["So, {}", "Tell me: {}", "Hey nano, {}", "{} please"]).format(question.lower().rstrip("."))
        return Exchange("small talk", [question], [answers[0]], check="one of:" + json.dumps(answers))
    if rng.random() < 0.3:
        question = rng.choice([question.lower(), question.rstrip("?.!")])
    return simple("small talk", question, rng.choice(answers), "english")


def beyond(rng, held=False):
    return simple("beyond", rng.choice(BEYOND), rng.choice(BEYOND_ANSWERS), "english")


DEFINE = ["What is {a}?", "What does {w} mean?", "Define {w}.", "What is the meaning of {w}?", "Define the word {w}.",
          "{w}", "define {w}", "What does the word {w} mean?", "Explain the word {w}.", "meaning of {w}",
          "Tell me what {w} means.", "Can you define {w}?", "Give me a definition of {w}."]


def define(rng, held=False):
    def draw(rng):
        if rng.random() < 0.2:
            word = rng.choice(list(THINGS))
            answer = f"{word} (noun): {THINGS[word]}."
        else:
            word = rng.choice(WORD_LIST)
            if word in THINGS:
                return draw(rng)
            kind, text = WORDS[word]
            answer = f"{word} ({KINDS[kind]}): {text}."
        form = rng.choice(DEFINE[1:] if word not in THINGS else DEFINE)
        return (word, form), simple("definitions", form.format(w=word, a=a(word)), answer)
    if not held and rng.random() < 0.06:
        word = rng.choice([rng.choice(UNKNOWN_WORDS), invented(rng)])
        return simple("definitions", rng.choice(DEFINE[1:]).format(w=word), f"I do not know the word {word}.")
    return until(rng, held, draw)


WORD_LIST = list(WORDS)
KINDS = {"noun": "noun", "verb": "verb", "adj": "adjective", "adv": "adverb"}


ANIMALS = ["cat", "dog", "fox", "bear", "rabbit", "mouse", "frog", "bird", "duck", "horse", "pig", "owl", "bee", "lion", "turtle"]
TRAITS = ["little", "brave", "clever", "lazy", "kind", "hungry", "shy", "happy", "curious", "old", "young", "quiet"]
PLACES = ["forest", "village", "garden", "house by the sea", "big city", "farm", "castle", "valley", "cave", "small town"]
OBJECTS = ["red ball", "golden key", "shiny stone", "blue hat", "lost letter", "sweet cake", "silver bell", "map", "lamp", "strange egg"]
WEATHERS = ["The sun was shining", "It was raining", "The wind was strong", "Snow was falling", "The sky was clear", "It was a warm day"]
FEELINGS = ["very happy", "glad", "proud", "full of joy", "not afraid any more"]


def tale(rng, hero=None):
    name, friend = rng.sample(NAMES, 2)
    animal = hero or rng.choice(ANIMALS)
    other = rng.choice([x for x in ANIMALS if x != animal])
    trait, place, thing = rng.choice(TRAITS), rng.choice(PLACES), rng.choice(OBJECTS)
    first = f"Once upon a time there was {a(trait)} {animal} called {name}."
    second = f"{name} lived in {a(place)}."
    third = f"{rng.choice(WEATHERS)}, and {name} {rng.choice(['went for a walk', 'wanted to play', 'was looking for food', 'went out to see the world'])}."
    plot = rng.choice([
        f"On the way {name} found {a(thing)}. It belonged to {a(other)} called {friend}. {name} gave it back, and {friend} said thank you.",
        f"There {name} met {a(other)} called {friend}, who had lost {a(thing)}. Together they looked everywhere and found it under a tree.",
        f"Suddenly {name} heard a noise. It was {a(other)} called {friend}, who could not get out of a hole. {name} helped {friend} with a long rope.",
        f"{name} wanted {a(thing)} more than anything. A friendly {other} called {friend} had one and shared it.",
        f"But then it became dark, and {name} could not find the way home. {friend} the {other} showed {name} the way with {a(thing)}.",
    ])
    end = rng.choice([f"From that day on {name} and {friend} were best friends.", f"In the evening {name} was {rng.choice(FEELINGS)}.",
                      f"{name} was {rng.choice(FEELINGS)} and slept well that night.", "And they all lived happily ever after."])
    return animal, " ".join([first, second, third, plot, end])


def story(rng, held=False):
    def draw(rng):
        hero = rng.choice(ANIMALS)
        animal, text = tale(rng, hero)
        question = rng.choice(["Tell me a story.", "Tell me a tiny story.", "Tell me a short story.", "story please"] * 2 + [
            f"Tell me a story about {a(hero)}.", f"Write a story about {a(hero)}.", f"I want a story about {a(hero)}.",
            f"Can you tell me a story about {a(hero)}?", f"Make up a short story about {a(hero)}."] * 2)
        return (animal, text), simple("stories", question, text, "english")
    return until(rng, held, draw)


SIGNS = {"+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y}
SPOKEN = {"+": "plus", "-": "minus", "*": "times"}


def sums(rng, held=False):
    def draw(rng):
        sign = rng.choice("+++--*")
        if sign == "*":
            x, y = rng.randint(0, 12), rng.randint(0, 12)
        else:
            top = rng.choice([10, 20, 100, 100, 100])
            x, y = rng.randrange(top), rng.randrange(top)
        if sign == "-" and y > x:
            x, y = y, x
        shown = rng.choice([sign, sign, {"*": "x"}.get(sign, sign)])
        question = rng.choice([f"What is {x} {shown} {y}?", f"{x} {shown} {y}", f"{x}{shown}{y}", f"{x} {shown} {y} =", f"{x}{shown}{y}=?",
                               f"How much is {x} {shown} {y}?", f"What is {x} {SPOKEN[sign]} {y}?", f"Calculate {x} {shown} {y}.",
                               f"Please compute {x} {shown} {y}."] + {"+": [f"Add {x} and {y}.", f"What is the sum of {x} and {y}?"],
                               "-": [f"Subtract {y} from {x}.", f"Take {y} away from {x}."], "*": [f"Multiply {x} by {y}."]}[sign])
        # The times table is known by heart, so only its wording can be new.
        key = (sign, x, y) if sign != "*" else (sign, x, y, question)
        return key, simple("sums", question, f"{x} {sign} {y} = {SIGNS[sign](x, y)}")
    return until(rng, held, draw)


FRUIT = ["apples", "pears", "books", "coins", "balls", "pens", "eggs", "cakes", "stones", "cards"]


def word_sum(rng, held=False):
    def draw(rng):
        name, friend = rng.sample(NAMES, 2)
        thing, x, y = rng.choice(FRUIT), rng.randint(2, 30), rng.randint(2, 30)
        if rng.random() < 0.5:
            return ("ws", x, y, thing, name), simple("word problems", rng.choice([
                f"{name} has {x} {thing} and gets {y} more. How many {thing} does {name} have?",
                f"{name} has {x} {thing}. {friend} has {y} {thing}. How many {thing} do they have together?"]),
                f"{x} + {y} = {x + y}, so the answer is {x + y} {thing}.")
        x, y = max(x, y) + 1, min(x, y)
        return ("ws", x, y, thing, name), simple("word problems", rng.choice([
            f"{name} has {x} {thing} and gives {y} to {friend}. How many are left?",
            f"There are {x} {thing} in a box. {name} takes {y} of them. How many are left?"]),
            f"{x} - {y} = {x - y}, so the answer is {x - y} {thing}.")
    return until(rng, held, draw)


def compare(rng, held=False):
    def draw(rng):
        x, y = rng.sample(range(100), 2)
        kind = rng.choice(["larger", "bigger", "smaller"])
        answer = min(x, y) if kind == "smaller" else max(x, y)
        if rng.random() < 0.3:
            n = rng.randint(1, 98)
            step = rng.choice([("after", 1), ("before", -1)])
            return ("next", n), simple("numbers", f"What number comes {step[0]} {n}?", f"{n + step[1]}")
        return ("cmp", x, y), simple("numbers", rng.choice([f"Which is {kind}, {x} or {y}?", f"Which number is {kind}: {x} or {y}?"]), f"{answer}")
    return until(rng, held, draw)


DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = {"January": 31, "February": 28, "March": 31, "April": 30, "May": 31, "June": 30, "July": 31, "August": 31,
          "September": 30, "October": 31, "November": 30, "December": 31}


def dates(rng, held=False):
    months = list(MONTHS)

    def draw(rng):
        kind = rng.randrange(5)
        if kind == 0:
            d, n = rng.randrange(7), rng.randint(1, 7)
            return ("day", d, n), simple("dates", f"What day is it {n} day{'s' if n > 1 else ''} after {DAYS[d]}?", f"{DAYS[(d + n) % 7]}")
        if kind == 1:
            d = rng.randrange(7)
            word, step = rng.choice([("after", 1), ("before", -1)])
            q = rng.choice([f"What day comes {word} {DAYS[d]}?", f"Which day is {word} {DAYS[d]}?"])
            return ("day", d, q), simple("dates", q, f"{DAYS[(d + step) % 7]}")
        if kind == 2:
            m = rng.choice(months)
            q = rng.choice([f"How many days does {m} have?", f"How many days are in {m}?", f"How long is {m}?"])
            return ("month", q), simple("dates", q, f"{m} has {MONTHS[m]} days.")
        if kind == 3:
            m = rng.randrange(12)
            word, step = rng.choice([("after", 1), ("before", -1)])
            q = rng.choice([f"What month comes {word} {months[m]}?", f"Which month is {word} {months[m]}?"])
            return ("month", q), simple("dates", q, f"{months[(m + step) % 12]}")
        m = rng.choice(months)
        n = rng.randint(1, 9)
        d = rng.randint(1, MONTHS[m] - n)
        q = rng.choice([f"What date is {n} day{'s' if n > 1 else ''} after {d} {m}?", f"What is {d} {m} plus {n} day{'s' if n > 1 else ''}?"])
        return ("date", m, d, n), simple("dates", q, f"{d + n} {m}")
    return until(rng, held, draw)


UNITS = [("metres", "centimetres", 100), ("kilometres", "metres", 1000), ("centimetres", "millimetres", 10), ("hours", "minutes", 60),
         ("minutes", "seconds", 60), ("days", "hours", 24), ("weeks", "days", 7), ("kilograms", "grams", 1000),
         ("litres", "millilitres", 1000), ("feet", "inches", 12), ("years", "months", 12), ("tonnes", "kilograms", 1000), ("yards", "feet", 3)]


def units(rng, held=False):
    def draw(rng):
        large, small, factor = rng.choice(UNITS)
        n = rng.randint(1, 20 if factor in (60, 24, 12, 7, 3) else 60)
        if rng.random() < 0.65:
            q = rng.choice([f"How many {small} are in {n} {large}?", f"Convert {n} {large} to {small}.", f"What is {n} {large} in {small}?",
                            f"{n} {large} in {small}"])
            return (n, large, small), simple("units", q, f"{n} {large} = {n * factor} {small}")
        q = rng.choice([f"How many {large} are {n * factor} {small}?", f"Convert {n * factor} {small} to {large}.", f"{n * factor} {small} in {large}"])
        return (n, small, large), simple("units", q, f"{n * factor} {small} = {n} {large}")
    return until(rng, held, draw)


def knowledge(rng, held=False):
    kind = rng.randrange(4)
    if kind == 0:
        pair = list(rng.choice(OPPOSITES))
        if pair != ["new", "old"]:
            rng.shuffle(pair)
        if pair[0] == "old":
            pair[1] = "young"
        q = rng.choice(["What is the opposite of {}?", "opposite of {}", "Give me the opposite of {}.", "What is the reverse of {}?"])
        return simple("knowledge", q.format(pair[0]), f"The opposite of {pair[0]} is {pair[1]}.")
    if kind == 1:
        country = rng.choice(list(CAPITALS))
        q = rng.choice(["What is the capital of {}?", "capital of {}", "Name the capital of {}.", "Which city is the capital of {}?"])
        return simple("knowledge", q.format(country), f"The capital of {country} is {CAPITALS[country]}.")
    if kind == 2:
        animal = rng.choice(list(SOUNDS))
        q = rng.choice(["What sound does {} make?", "What does {} say?", "What noise does {} make?"])
        return simple("knowledge", q.format(a(animal)), f"{a(animal).capitalize()} {SOUNDS[animal]}.")
    start, count = rng.randint(1, 20), rng.randint(3, 10)
    return simple("knowledge", rng.choice(["Count from {} to {}.", "count from {} to {}"]).format(start, start + count),
                  ", ".join(str(start + i) for i in range(count + 1)))


def copying(rng, held=False):
    def draw(rng):
        pool = WORD_LIST[:900]
        words = [rng.choice(pool) if rng.random() < 0.7 else invented(rng) for _ in range(rng.randint(1, 5))]
        kind = rng.randrange(5)
        if kind == 0:
            text = " ".join(words)
            return ("copy", text), simple("copying", rng.choice(["Repeat: {}", "Repeat after me: {}", "Say: {}", "Say {}", "Repeat {}"]).format(text), text)
        if kind == 1:
            word = words[0]
            return ("spell", word), simple("copying", rng.choice(["Spell {}.", "How do you spell {}?", "Spell the word {}."]).format(word), "-".join(word))
        if kind == 2:
            text = " ".join(words)
            return ("upper", text), simple("copying", f"Write in capitals: {words[0]}", words[0].upper())
        if kind == 3:
            word = words[0]
            which, letter = rng.choice([("first", word[0]), ("last", word[-1])])
            return ("letter", which, word), simple("copying", f"What is the {which} letter of {word}?", letter)
        words = (words + [rng.choice(pool), rng.choice(pool)])[:5]
        which = rng.choice(["first", "last"])
        return ("list", tuple(words)), simple("copying", f"What is the {which} word: {' '.join(words)}?", words[0 if which == "first" else -1])
    return until(rng, held, draw)


def person(rng):
    return rng.choice(NAMES) if rng.random() < 0.7 else invented(rng).capitalize()


def city(rng):
    return rng.choice(CITIES) if rng.random() < 0.7 else invented(rng).capitalize()


def json_answer(rng, held=False):
    def draw(rng):
        name = person(rng)
        if rng.random() < 0.2:
            words = rng.sample(FRUIT + ANIMALS + ["red", "green", "blue", "white", "black"], rng.randint(2, 4))
            q = rng.choice(["Write this list as JSON: {}.", "Give me a JSON array of {}.", "Make a JSON list: {}."]).format(listed(words))
            return ("list", tuple(words)), simple("json", q, json.dumps(words), "json")
        record = {"name": name}
        told = [name]
        pool = [("age", rng.randint(5, 90), "is {} years old"), ("city", city(rng), "lives in {}"),
                ("pet", rng.choice(ANIMALS), "has a {}"), ("job", rng.choice(["teacher", "doctor", "cook", "farmer", "driver", "singer"]), "works as a {}"),
                ("colour", rng.choice(["red", "green", "blue", "yellow", "black", "white"]), "likes {}"),
                ("children", rng.randint(1, 5), "has {} children"), ("student", rng.random() < 0.5, None)]
        chosen = rng.sample(pool, rng.randint(1, 3))
        for key, value, phrase in chosen:
            record[key] = value
            told.append(phrase.format(value) if phrase else ("is a student" if value else "is not a student"))
        fact = f"{told[0]} {listed(told[1:])}."
        keys = list(record)
        q = rng.choice([f"Write JSON with {listed(keys)}: {fact}", f"{fact} Answer as JSON with the fields {listed(keys)}.",
                        f"Extract {listed(keys)} as JSON: {fact}", f"Turn this into JSON: {fact}", f"{fact} Give me that as JSON."])
        return tuple(record.items()), simple("json", q, json.dumps(record), "json")
    return until(rng, held, draw)


def parameter(kind, description, **more):
    return {"type": kind, "description": description, **more}


def tool(name, description, /, **parameters):
    made = {"name": name, "description": description}
    if parameters:
        made["parameters"] = {"type": "object", "properties": parameters, "required": list(parameters)[:1]}
    return made


ROOMS = ["kitchen", "bedroom", "garden", "bathroom", "hall", "office"]
FOODS = ["pizza", "bread", "apples", "cheese", "rice", "milk", "tea", "eggs"]


def request(rng):
    """A tool, what is asked, the arguments, what the tool says and what the model then says."""
    kind = rng.randrange(13)
    where, who, n = city(rng), person(rng), rng.randint(1, 60)
    if kind == 0:
        degrees, sky = rng.randint(-5, 35), rng.choice(["sunny", "rainy", "cloudy", "windy"])
        made = tool(rng.choice(["get_weather", "weather"]), rng.choice(["Get the weather", "Get the current weather", "Weather in a city"]), city=parameter("string", "City name"))
        return made, rng.choice(["What is the weather in {}?", "How is the weather in {}?", "Weather in {}?", "Is it warm in {}?"]).format(where), {"city": where}, f"{degrees}C {sky}", f"It is {degrees}C and {sky} in {where}."
    if kind == 1:
        made = tool(rng.choice(["set_timer", "start_timer"]), "Start a timer", minutes=parameter("integer", "Minutes"))
        return made, rng.choice([f"Set a timer for {n} minutes.", f"Start a timer of {n} minutes.", f"Wake me in {n} minutes."]), {"minutes": n}, "ok", f"The timer is set for {n} minutes."
    if kind == 2:
        room, on = rng.choice(ROOMS), rng.random() < 0.5
        made = tool(rng.choice(["set_light", "switch_light"]), "Switch a light", room=parameter("string", "Room"), on=parameter("boolean", "On or off"))
        return made, rng.choice([f"Turn {'on' if on else 'off'} the light in the {room}.", f"Switch the {room} light {'on' if on else 'off'}."]), {"room": room, "on": on}, "done", f"The light in the {room} is {'on' if on else 'off'}."
    if kind == 3:
        text = " ".join(rng.sample(WORD_LIST[:600], rng.randint(1, 3)))
        made = tool(rng.choice(["search", "web_search"]), "Search the web", query=parameter("string", "What to look for"))
        found = rng.randint(1, 99)
        return made, rng.choice([f"Search for {text}.", f"Look up {text}.", f"Find {text} on the web."]), {"query": text}, f"{found} results", f"I found {found} results for {text}."
    if kind == 4:
        text = rng.choice(["hello", "see you soon", "good morning", "call me", "I am late", "happy birthday", "thank you"])
        made = tool("send_message", "Send a message to a person", to=parameter("string", "Name"), text=parameter("string", "Message"))
        return made, rng.choice([f"Send {who} the message: {text}", f"Write to {who}: {text}", f"Tell {who}: {text}"]), {"to": who, "text": text}, "sent", f"I sent the message to {who}."
    if kind == 5:
        x, y = rng.randint(100, 9999), rng.randint(10, 999)
        sign = rng.choice("+-*/")
        made = tool(rng.choice(["calculator", "calculate"]), "Work out a sum", expression=parameter("string", "The sum"))
        value = {"+": x + y, "-": x - y, "*": x * y, "/": x // y}[sign]
        return made, rng.choice([f"What is {x} {sign} {y}?", f"Use the calculator: {x} {sign} {y}", f"Calculate {x} {sign} {y}."]), {"expression": f"{x} {sign} {y}"}, f"{value}", f"{x} {sign} {y} = {value}"
    if kind == 6:
        made = tool("get_time", "Get the current time", city=parameter("string", "City"))
        clock = f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}"
        return made, rng.choice([f"What time is it in {where}?", f"Tell me the time in {where}.", f"Time in {where}?"]), {"city": where}, clock, f"It is {clock} in {where}."
    if kind == 7:
        song = " ".join(rng.sample(WORD_LIST[:600], rng.randint(1, 2)))
        made = tool("play_music", "Play a song", song=parameter("string", "Title"))
        return made, rng.choice([f"Play {song}.", f"Play the song {song}.", f"I want to hear {song}."]), {"song": song}, "playing", f"Playing {song}."
    if kind == 8:
        food, count = rng.choice(FOODS), rng.randint(1, 9)
        made = tool(rng.choice(["add_item", "add_to_list"]), "Add to the shopping list", item=parameter("string", "What"), count=parameter("integer", "How many"))
        return made, rng.choice([f"Add {count} {food} to my list.", f"Put {count} {food} on the shopping list.", f"I need {count} {food}."]), {"item": food, "count": count}, "added", f"I added {count} {food} to the list."
    if kind == 9:
        unit = rng.choice(["celsius", "fahrenheit"])
        degrees = rng.randint(5, 30)
        made = tool("set_temperature", "Set the heating", value=parameter("integer", "Degrees"), unit=parameter("string", "Unit", enum=["celsius", "fahrenheit"]))
        return made, f"Set the heating to {degrees} degrees {unit}.", {"value": degrees, "unit": unit}, "ok", f"The heating is set to {degrees} degrees {unit}."
    if kind == 10:
        made = tool("get_date", "Get the date of today")
        day, month = rng.randint(1, 28), rng.choice(list(MONTHS))
        return made, rng.choice(["What is the date today?", "What day is it today?", "Tell me the date."]), {}, f"{day} {month}", f"Today is {day} {month}."
    if kind == 11:
        path = f"{invented(rng)}.txt"
        made = tool(rng.choice(["read_file", "open_file"]), "Read a file", path=parameter("string", "File name"))
        text = " ".join(rng.sample(WORD_LIST[:600], 2))
        return made, rng.choice([f"What is in {path}?", f"Read the file {path}.", f"Open {path}."]), {"path": path}, text, f"The file says: {text}"
    # A tool nobody has seen: its name and parameter must be taken from the declaration.
    name, key = f"{rng.choice(['get', 'set', 'run', 'find', 'make'])}_{invented(rng)}", rng.choice(["name", "value", "id", "text", "key", "item"])
    value = rng.choice([person(rng), invented(rng), n])
    made = tool(name, rng.choice(["Does something", "A special tool", "Run a task", "Look something up"]), **{key: parameter("integer" if isinstance(value, int) else "string", "The " + key)})
    answer = invented(rng)
    return made, rng.choice([f"Call {name} with {value}.", f"Use {name} with {value}.", f"Please run {name} with {key} {value}.", f"{name} {value}"]), {key: value}, answer, f"The tool said: {answer}"


def tool_call(rng, held=False):
    def draw(rng):
        made, question, arguments, result, final = request(rng)
        others = [request(rng)[0] for _ in range(rng.choice([0, 0, 1, 1, 2]))]
        tools = [made] + [t for t in others if t["name"] != made["name"]]
        rng.shuffle(tools)
        exchange = Exchange("tools", [question], call(made["name"], arguments), tools=tools, check="tool",
                            system=rng.choice([None, None, "You are a helpful assistant."]))
        exchange.result, exchange.final = result, final
        return (made["name"], question), exchange
    if not held and rng.random() < 0.2:  # a tool is there and not wanted
        exchange = rng.choice([small_talk, sums, define, knowledge, story])(rng)
        exchange.tools = [request(rng)[0] for _ in range(rng.randint(1, 2))]
        exchange.tools = [t for t in exchange.tools if not t["name"].startswith("calc")] or [tool("get_date", "Get the date of today")]
        return exchange
    return until(rng, held, draw)


def tool_answer(rng, held=False):
    """For scores: the answer that follows a tool's result."""
    def draw(rng):
        made, question, arguments, result, final = request(rng)
        return (made["name"], question), Exchange("tool answers", [question], call(made["name"], arguments), tools=[made], result=result, final=final)
    return until(rng, held, draw)


SYSTEMS = ["You are a helpful assistant.", "You are nano.", "Be brief.", "You are a friendly assistant.", "Answer the question.", "You are a helpful assistant. Be kind."]


def persona(rng, held=False):
    def draw(rng):
        name = person(rng)
        system = rng.choice(["Your name is {}.", "You are {}.", "You are called {}.", "You are an assistant called {}."]).format(name)
        question = rng.choice(["What is your name?", "Who are you?", "What should I call you?", "Do you have a name?"])
        return ("persona", name, system), Exchange("system prompts", [question], [f"My name is {name}."], system=system)
    if not held and rng.random() < 0.6:
        exchange = any_exchange(rng, plain=True)
        exchange.system = rng.choice(SYSTEMS)
        return exchange
    return until(rng, held, draw)


PLAIN = [(small_talk, 10), (beyond, 3), (define, 22), (story, 8), (sums, 16), (word_sum, 4), (compare, 3), (dates, 5), (units, 5),
         (knowledge, 6), (copying, 6), (json_answer, 7)]
ALL = PLAIN + [(tool_call, 14), (persona, 3)]
SCORED = {"small talk": small_talk, "definitions": define, "stories": story, "sums": sums, "word problems": word_sum, "numbers": compare,
          "dates": dates, "units": units, "knowledge": knowledge, "copying": copying, "json": json_answer, "tools": tool_call,
          "tool answers": tool_answer, "system prompts": persona}


def any_exchange(rng, plain=False):
    table = PLAIN if plain else ALL
    skill = rng.choices([s for s, _ in table], [w for _, w in table])[0]
    return skill(rng)
