SELECT store_id, count(DISTINCT user_id) AS customers
FROM transactions
WHERE user_id IS NOT NULL
GROUP BY store_id
ORDER BY store_id
