-- What each store took in per half-year during opening hours.

PARAMETER opens = '06:00:00';
PARAMETER closes = '23:00:00';

WITH taken AS (
    SELECT year(created_at) AS year,
           CASE WHEN month(created_at) <= 6 THEN 1 ELSE 2 END AS half,
           store_id,
           sum(final_amount) AS amount
    FROM transactions
    WHERE year(created_at) BETWEEN $first_year AND $last_year
      AND time_of_day(created_at) BETWEEN $opens AND $closes
    GROUP BY year, half, store_id
)
SELECT CAST(t.year AS TEXT) || '-H' || CAST(t.half AS TEXT) AS half, s.store_name, t.amount
FROM taken t
JOIN stores s ON s.store_id = t.store_id
ORDER BY half, s.store_name, s.store_id;
