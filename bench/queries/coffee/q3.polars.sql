WITH taken AS (
    SELECT SUBSTR(created_at, 1, 4) AS year,
           CASE WHEN SUBSTR(created_at, 6, 2) <= '06' THEN '-H1' ELSE '-H2' END AS half,
           store_id,
           sum(final_amount) AS amount
    FROM transactions
    WHERE created_at >= '2024' AND created_at < '2026'
      AND SUBSTR(created_at, 12) >= '06:00:00' AND SUBSTR(created_at, 12) <= '23:00:00'
    GROUP BY year, half, store_id
)
SELECT t.year || t.half AS period, s.store_name, t.amount
FROM taken t
JOIN stores s ON s.store_id = t.store_id
ORDER BY period, s.store_name, s.store_id
