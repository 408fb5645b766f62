SELECT store_id, count(DISTINCT CAST(user_id AS INTEGER)) AS customers
FROM transactions()
GROUP BY store_id
ORDER BY store_id;
