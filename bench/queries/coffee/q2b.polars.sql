WITH sold AS (
    SELECT SUBSTR(created_at, 1, 7) AS month, item_id, sum(subtotal) AS subtotal
    FROM transaction_items
    WHERE created_at >= '2024' AND created_at < '2026'
    GROUP BY month, item_id
), ranked AS (
    SELECT s.month, m.item_name, s.subtotal,
           ROW_NUMBER() OVER (PARTITION BY s.month ORDER BY -s.subtotal, s.item_id) AS place
    FROM sold s
    JOIN menu_items m ON m.item_id = s.item_id
)
SELECT month, item_name, subtotal FROM ranked WHERE place = 1 ORDER BY month
