WITH a AS (SELECT DISTINCT id, m.* FROM movies m), b AS ((SELECT 1) UNION ALL SELECT 2)
SELECT a.x, count(*) c FROM a JOIN b USING (id) LEFT JOIN (SELECT .5 q) s ON s.q = a.q,
  UNNEST(a.genres) AS g(genre)
WHERE a.x NOT IN (1, $from_year) AND y BETWEEN -1 AND 2 OR z ILIKE 'it''s%'
GROUP BY 1 HAVING count(*) > 1e3 QUALIFY row_number() OVER (PARTITION BY a ORDER BY b DESC) <= 3
ORDER BY 2 DESC NULLS FIRST LIMIT 5 OFFSET 1;
