-- The most frequent customers of each store, with their birthdays where these are known.

PARAMETER best = 3;

WITH best_users AS (
    SELECT store_id, user_id, count(*) AS transactions
    FROM transactions
    WHERE year(created_at) BETWEEN $first_year AND $last_year
      AND user_id IS NOT NULL
    GROUP BY store_id, user_id
    QUALIFY row_number() OVER (PARTITION BY store_id ORDER BY transactions DESC, user_id) <= $best
)
SELECT s.store_name, b.user_id, u.birthdate, b.transactions
FROM best_users b
JOIN stores s ON s.store_id = b.store_id
LEFT JOIN users u ON u.user_id = b.user_id
ORDER BY s.store_name, s.store_id, b.transactions DESC, b.user_id;
