"""Writes fixtures.json: what ir_measures says of drawn rankings. Run: python fixtures.py > fixtures.json

A probe has gold groups of one or two events; a ranking has items that name up to three events. ir_measures knows documents
only: a group is a document, and an item is the document of the group that it serves first, or a document of nobody's. Items
that would serve two new groups at once are not drawn: no document can be two.
"""

import json

import ir_measures
import numpy as np
from ir_measures import R, RR, Success, nDCG

rng = np.random.default_rng(20261122)
cutoffs = (1, 5, 10, 20)
cases, qrels, run = [], [], []

for number in range(60):
    groups, event = [], 0
    for _ in range(int(rng.integers(1, 8))):
        size = int(rng.integers(1, 3))
        groups.append([f"e{event + i}" for i in range(size)])
        event += size
    events, served, ranking = event, set(), []
    for rank in range(int(rng.integers(0, 30))):
        item, new = [], set()
        for _ in range(int(rng.integers(0, 4))):
            name = f"e{rng.integers(0, events)}" if rng.uniform() < 0.25 else f"x{rng.integers(0, 50)}"
            fresh = {g for g, group in enumerate(groups) if name in group} - served
            if name not in item and len(new | fresh) <= 1:
                item.append(name)
                new |= fresh
        served |= new
        ranking.append(item)
        run.append(ir_measures.ScoredDoc(str(number), f"g{new.pop()}" if new else f"nobody{rank}", -float(rank)))
    qrels += [ir_measures.Qrel(str(number), f"g{g}", 1) for g in range(len(groups))]
    cases.append({"groups": groups, "ranking": ranking})

measures = [RR] + [m @ k for m in (Success, R, nDCG) for k in cutoffs]
for case in cases:
    case.update({"mrr": 0.0, "hit": [0.0] * 4, "recall": [0.0] * 4, "ndcg": [0.0] * 4})
names = {"Success": "hit", "R": "recall", "nDCG": "ndcg"}
for value in ir_measures.iter_calc(measures, qrels, run):
    case = cases[int(value.query_id)]
    if value.measure == RR:
        case["mrr"] = value.value
    else:
        case[names[value.measure.NAME]][cutoffs.index(value.measure["cutoff"])] = value.value

print(json.dumps({"version": ir_measures.__version__, "cases": cases}))
