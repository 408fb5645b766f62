SELECT k, count(DISTINCT a + 1) AS n, sum(DISTINCT b), count() FROM t GROUP BY k HAVING min(DISTINCT (c)) > 0
