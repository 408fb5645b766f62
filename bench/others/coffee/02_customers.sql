-- Count distinct: how many customers each store ever had.

SELECT store_id, count(*) AS customers
FROM (SELECT DISTINCT store_id, user_id FROM transactions WHERE user_id IS NOT NULL) d
GROUP BY store_id
ORDER BY store_id;
