"""When the run began, and messages with the seconds since."""
import time

BEGAN = time.time()


def say(*words):
    print(f"[{time.time() - BEGAN:6.1f}]", *words, flush=True)
