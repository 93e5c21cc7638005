"""Writes fixtures.json: what scipy and statsmodels say of drawn samples. Run: python fixtures.py > fixtures.json"""

import json

import numpy as np
import scipy.stats as st
import statsmodels.api as sm
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.multitest import multipletests



def c4(n):
    """The mean of a standard deviation of n normal values with variance 1: of the chi distribution."""
    return st.chi.mean(n - 1) / np.sqrt(n - 1)


rng = np.random.default_rng(20261122)
out = {"versions": {"scipy": st.__name__ and __import__("scipy").__version__, "statsmodels": sm.__name__ and __import__("statsmodels").__version__}}

out["sign_flip"] = []
for clusters in (3, 6, 8, 10, 12):
    names = [f"c{i}" for i in range(clusters) for _ in range(rng.integers(1, 6))]
    values = np.round(rng.normal(0.15, 0.5, len(names)), 6)
    sums = np.array([values[[n == f"c{i}" for n in names]].sum() for i in range(clusters)])
    p = st.permutation_test((sums,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative="two-sided").pvalue
    ols = sm.OLS(values, np.ones(len(values))).fit(
        cov_type="cluster", cov_kwds={"groups": np.array([int(n[1:]) for n in names]), "use_correction": False})
    se = float(ols.bse[0] * np.sqrt(clusters / (clusters - 1)))
    out["sign_flip"].append({
        "samples": [{"Cluster": n, "Value": float(v)} for n, v in zip(names, values)], "p": float(p), "standard_error": se,
        "detectable": float((st.t.ppf(0.975, clusters - 1) + st.t.ppf(0.8, clusters - 1)) * se / c4(clusters) + 1 / len(values))})

out["holm"] = []
for n in (1, 2, 5, 9):
    p = np.round(rng.uniform(0, 0.2, n), 6)
    out["holm"].append({"p": p.tolist(), "adjusted": multipletests(p, method="holm")[1].tolist()})

out["auroc"] = []
for a, b in ((5, 7), (30, 20), (4, 4)):
    x, y = np.round(rng.normal(0.4, 1, a), 1), np.round(rng.normal(0, 1, b), 1)
    out["auroc"].append({"positives": x.tolist(), "negatives": y.tolist(),
                         "area": float(st.mannwhitneyu(x, y).statistic / (a * b))})

out["kappa"] = []
for n in (10, 40):
    a, b = rng.integers(0, 3, n), rng.integers(0, 3, n)
    b = np.where(rng.uniform(size=n) < 0.6, a, b)
    table = np.zeros((3, 3))
    for i, j in zip(a, b):
        table[i, j] += 1
    out["kappa"].append({"a": [str(v) for v in a], "b": [str(v) for v in b], "kappa": float(cohens_kappa(table).kappa)})

out["percentiles"] = []
for n in (5, 100, 2000):
    v = np.round(rng.normal(size=n), 6)
    out["percentiles"].append({"values": v.tolist() if n < 2000 else v[:200].tolist(),
                               "low": float(np.percentile(v if n < 2000 else v[:200], 2.5)),
                               "high": float(np.percentile(v if n < 2000 else v[:200], 97.5))})

out["zero_of_n"] = [{"n": n, "bound": float(st.beta.ppf(0.95, 1, n))} for n in (1, 5, 10, 59, 1000)]

print(json.dumps(out, indent=1))
