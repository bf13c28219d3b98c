import json
data = [{"id": i, "name": f"näme {i}", "list": list(range(i % 20)), "x": i / 7, "none": None} for i in range(20000)]
text = json.dumps(data, indent=1, sort_keys=True)
assert json.loads(text) == data
with open("data.json", "w") as f:
    json.dump(data, f)
with open("data.json") as f:
    assert json.load(f) == data
print(len(text), text[1000:1100])
print("done")
