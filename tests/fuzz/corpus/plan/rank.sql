PARAMETER best = 2;
SELECT text, day, coalesce(number, 0.5::DOUBLE) AS x, regexp_extract(text, '(a)b', 1) FROM flags
QUALIFY row_number() OVER (PARTITION BY day ORDER BY x DESC) <= $best;
