"""Recomputes the figures of behaviour from the files of a pack and of a run.

    python3 behaviour.py PACK RUN [GRADES]

PACK is a pack's folder, RUN a run's folder. Prints, as JSON, for each provider the mean and the number of probes of each
figure, over its conversations under the first budget. It shares nothing with memhost but the files.
"""
import collections
import datetime
import json
import os
import re
import sys

pack, run = sys.argv[1:3]


def lines(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def when(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def named(value, text):
    if not value:
        return False
    text, value = " ".join(text.lower().split()), " ".join(value.lower().split())
    return re.search(r"(?<![^\W_])" + re.escape(value) + r"(?![^\W_])", text) is not None


wishes = collections.defaultdict(list)
if os.path.exists(os.path.join(pack, "preferences.jsonl")):
    for row in lines(pack, "preferences.jsonl"):
        wishes[row["persona_id"]].append(row)

probes = {row["probe_id"]: row for row in lines(pack, "probes.jsonl")}


class Truth:
    """What a probe's person wants at that time."""

    def __init__(self, probe):
        self.now, self.before, self.elsewhere, differs = None, [], [], False
        self.answerable = probe["gold"]["answerable"]
        if probe.get("as_of") and probe.get("attribute"):
            at = when(probe["as_of"])
            same = [w for w in wishes[probe["persona_id"]] if w["attribute"] == probe["attribute"] and when(w["from"]) <= at]
            over = [w for w in same if w.get("until") and when(w["until"]) <= at]
            holds = [w for w in same if w not in over]
            here = [w for w in holds if w.get("context", "") == probe.get("context", "")]
            here = here or [w for w in holds if not w.get("context")]
            if here:
                self.now = here[0]["value"]
                place = here[0].get("context", "")
                self.before = [w["value"] for w in over if w.get("context", "") == place and w["value"] != self.now]
                self.elsewhere = [w["value"] for w in same if w.get("context", "") != place and w["value"] != self.now]
                differs = any(w.get("context", "") != place and w["value"] != self.now for w in holds)
        self.cs, self.pet = differs and not self.before, bool(self.before) and not differs
        self.both = differs and bool(self.before)


PHRASES = ["do not know", "don't know", "don’t know", "not sure", "no idea", "cannot tell", "can't tell", "not mentioned",
           "never mentioned", "have not told", "haven't told", "no record", "no information", "not been told"]

truth = {name: Truth(row) for name, row in probes.items()}


def figures(talk, turns):
    t = truth[talk["probe_id"]]
    exchanges = talk.get("exchanges") or []
    first = exchanges[0].get("agent", "") if exchanges else ""
    current = named(t.now, first)
    stale = any(named(v, first) for v in t.before)
    other = any(named(v, first) for v in t.elsewhere)
    right = float(current and not stale and not other)
    out = {}
    if t.now or not t.answerable:
        out["given_up"] = float(talk["ended"] != "accepted")
        out["no_retrieval"] = float(not any(r["turn"] <= 1 and not r.get("error") for r in talk.get("retrievals") or []))
    if t.cs:
        out["cs"] = right
        out["cs_other_context"] = float(other and not current and not stale)
    if t.pet:
        out["pet"], out["pet_stale"] = right, float(stale and not current)
    if t.both:
        out["cs_and_pet"] = right
    if t.now:
        corrections = sum(x.get("action") == "correct" for x in exchanges)
        out["corrections_needed"] = float(corrections if talk["ended"] == "accepted" else turns - 1)
    elif not t.answerable:
        out["abstained"] = float(any(p in " ".join(first.lower().split()) for p in PHRASES))
    return out


def leaked(talk):
    exchanges = talk.get("exchanges") or []
    return bool(exchanges) and named(truth[talk["probe_id"]].now, exchanges[0]["user"])


with open(os.path.join(run, "run.json"), encoding="utf-8") as f:
    record = json.load(f)
turns = (record["lab"].get("simulator") or {}).get("turns", 4)
budget = record["lab"]["budgets"][0]
talks = []  # label, replicate, transcript
for cell in record["cells"]:
    for line in lines(run, "cells", cell["label"], str(cell["replicate"]), "trace.jsonl"):
        if line["kind"] == "transcript" and line["transcript"]["budget"] == budget:
            talks.append((cell["label"], cell["replicate"], line["transcript"]))

usable = [x for x in talks if x[2]["ended"] != "simulator_failed"]
spoilt = {(replicate, talk["probe_id"]) for _, replicate, talk in usable if leaked(talk)}
values = collections.defaultdict(lambda: collections.defaultdict(lambda: collections.defaultdict(list)))
for label, replicate, talk in usable:
    if (replicate, talk["probe_id"]) not in spoilt:
        for name, value in figures(talk, turns).items():
            values[label][name][talk["probe_id"]].append(value)

result = {}
for label, by_name in values.items():
    result[label] = {}
    for name, by_probe in by_name.items():
        means = [sum(v) / len(v) for v in by_probe.values()]
        result[label][name] = {"mean": sum(means) / len(means), "n": len(means)}
if len(sys.argv) > 3:  # a judge's grades
    last = {}
    for row in lines(sys.argv[3]):
        if "header" not in row and row.get("budget") == budget:
            last[(row["label"], row["replicate"], row["probe_id"])] = row
    out = {(replicate, probe) for (_, replicate, probe), row in last.items() if row.get("leaked")}
    grades = collections.defaultdict(lambda: collections.defaultdict(list))
    for (label, replicate, probe), row in last.items():
        if (replicate, probe) not in out and row.get("grade") is not None:
            grades[label][probe].append(row["grade"])
    for label, by_probe in grades.items():
        means = [sum(v) / len(v) for v in by_probe.values()]
        result[label]["iqi_judge"] = {"mean": sum(means) / len(means), "n": len(means)}
json.dump(result, sys.stdout, indent=1, sort_keys=True)
