"""The session that all Spark tests share does what they rely on."""

import sys


def test_arrow_batches_pass_through_this_python(spark):
    def interpreters(batches):
        import sys

        import pyarrow as pa

        for batch in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable], "rows": [len(batch)]})

    rows = spark.range(1000).mapInArrow(interpreters, "python string, rows long").collect()
    assert {row.python for row in rows} == {sys.executable}
    assert sum(row.rows for row in rows) == 1000
