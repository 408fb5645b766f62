WITH sold AS (
    SELECT SUBSTR(created_at, 1, 7) AS month, item_id, sum(quantity) AS quantity
    FROM transaction_items
    WHERE created_at >= '2024' AND created_at < '2026'
    GROUP BY month, item_id
), ranked AS (
    SELECT s.month, m.item_name, s.quantity,
           ROW_NUMBER() OVER (PARTITION BY s.month ORDER BY -s.quantity, s.item_id) AS place
    FROM sold s
    JOIN menu_items m ON m.item_id = s.item_id
)
SELECT month, item_name, quantity FROM ranked WHERE place = 1 ORDER BY month
