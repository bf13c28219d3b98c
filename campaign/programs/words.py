"""Four threads hash, sort and count; the main thread puts together what they found."""
import hashlib
import json
import threading

PARTS = 4
found = {}
lock = threading.Lock()


def work(part):
    x, words = 1 + part, []
    for _ in range(6000):
        x = x * 16807 % 2147483647
        words.append(format(x % 4096, "x") + "-" + str(x % 97))
    counts = {}
    for word in sorted(words):
        counts[word[-2:]] = counts.get(word[-2:], 0) + 1
    digest = hashlib.sha256("".join(words).encode() * 8).hexdigest()
    with lock:
        found[part] = {"digest": digest, "counts": counts}


threads = [threading.Thread(target=work, args=(part,)) for part in range(PARTS)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
text = json.dumps(found, sort_keys=True)
print(hashlib.md5(text.encode()).hexdigest(), len(text))
for part in range(PARTS):
    print(part, found[part]["digest"], sum(found[part]["counts"].values()))
