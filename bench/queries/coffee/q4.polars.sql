WITH visits AS (
    SELECT store_id, CAST(user_id AS BIGINT) AS user_id, count(*) AS transactions
    FROM transactions
    WHERE created_at >= '2024' AND created_at < '2026' AND user_id IS NOT NULL
    GROUP BY store_id, user_id
), ranked AS (
    SELECT store_id, user_id, transactions, ROW_NUMBER() OVER (
               PARTITION BY store_id ORDER BY -CAST(transactions AS BIGINT), user_id) AS place
    FROM visits
)
SELECT s.store_name, b.user_id, u.birthdate, b.transactions
FROM ranked b
JOIN stores s ON s.store_id = b.store_id
LEFT JOIN users u ON u.user_id = b.user_id
WHERE b.place <= 3
ORDER BY s.store_name, s.store_id, b.transactions DESC, b.user_id
