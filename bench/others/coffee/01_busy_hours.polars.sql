SELECT store_id, CAST(SUBSTR(created_at, 12, 2) AS INT) AS hour, count(*) AS sales,
       avg(final_amount) AS average
FROM transactions
GROUP BY store_id, hour
ORDER BY store_id, hour
