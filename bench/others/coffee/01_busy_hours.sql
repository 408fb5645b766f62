-- Group by two numbers: sales per store and hour of the day.

SELECT store_id, hour(created_at) AS hour, count(*) AS sales, avg(final_amount) AS average
FROM transactions
GROUP BY store_id, hour
ORDER BY store_id, hour;
