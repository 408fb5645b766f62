-- A ranking by one aggregate per store instead of a window over all groups.
WITH visits AS (
    SELECT store_id, CAST(user_id AS INTEGER) AS user_id, count(*) AS transactions
    FROM transactions()
    WHERE created_at >= TIMESTAMP '2024-01-01' AND created_at < TIMESTAMP '2026-01-01'
      AND user_id IS NOT NULL
    GROUP BY ALL
), best_users AS (
    SELECT store_id, unnest(max({'transactions': transactions, 'user': -user_id}, 3)) AS best
    FROM visits
    GROUP BY store_id
)
SELECT s.store_name, -b.best.user AS user_id, u.birthdate, b.best.transactions AS transactions
FROM best_users b
JOIN stores() s ON s.store_id = b.store_id
LEFT JOIN users() u ON u.user_id = -b.best.user
ORDER BY s.store_name, s.store_id, transactions DESC, user_id;
