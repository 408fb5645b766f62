WITH taken AS (
    SELECT year(created_at) AS year,
           CASE WHEN month(created_at) <= 6 THEN 1 ELSE 2 END AS half,
           store_id,
           sum(final_amount) AS amount
    FROM transactions()
    WHERE created_at >= TIMESTAMP '2024-01-01' AND created_at < TIMESTAMP '2026-01-01'
      AND CAST(created_at AS TIME) BETWEEN TIME '06:00:00' AND TIME '23:00:00'
    GROUP BY year, half, store_id
)
SELECT t.year || '-H' || t.half AS half, s.store_name, t.amount
FROM taken t
JOIN stores() s ON s.store_id = t.store_id
ORDER BY 1, s.store_name, s.store_id;
