"""The Spark bench runs, and the baseline that it calls exact is."""

import numpy as np

from benches import tables
from benches.spark import sliding as bench
from streamgauge.sim import exact
from streamgauge.traces.workloads import two_hours


def test_the_bench_runs_to_its_end(spark, tmp_path):
    about, rows = tables.read(tables.write("spark", bench.measure(1e-4), tmp_path))
    assert {"commit", "machine", "pyspark", "seed", "trace"} <= set(about)
    held = {row["name"]: float(row["holding"]) for row in rows if row["holding"]}
    assert held.keys() == {"answers to Total", "answers to SelfJoin", "answers to Frequency"}
    assert held["answers to Total"] == 1


def test_the_rolling_sums_are_the_truth(spark, tmp_path):
    """Seen failing with rows that leave after 59 minutes."""
    trace = two_hours(seed=1, rows=3000, sites=2, items=300)
    rows = bench.rolling(bench.loaded(trace, tmp_path)).toPandas().sort_values("minute")
    for site, items, ms in bench.by_site(trace):
        found = rows[rows["site"] == site]
        ends = found["minute"].to_numpy() * bench.MINUTE
        truth = exact.sliding(items, ms, ends, last=bench.HOUR, asked=bench.ITEMS)
        assert np.array_equal(found["total"], truth.totals)
        assert np.array_equal(found["self_join"], truth.self_joins)
        for answers, frequencies in zip(found["frequencies"], truth.frequencies, strict=True):
            for answer in answers:
                assert answer["now"] == frequencies[bench.ITEMS.index(answer["item"])]
